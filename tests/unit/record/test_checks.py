"""Every check fires on a record built to trigger it, and none on a clean one."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from paceline.record import check
from paceline.record.record import Doubt
from records import STATE, failed_record, make_record


def codes(record):
    return [doubt.code for doubt in check(record)]


def with_column(record, name, change):
    samples = record.samples
    values = change(np.array(samples[name].to_pylist(), dtype=np.float64))
    return replace(record, samples=samples.set_column(samples.column_names.index(name), name, pa.array(values)))


def with_state(record, when, **facts):
    return replace(record, state={**STATE, when: {**STATE[when], **facts}})


def with_rank(record, rank, **facts):
    ranks = [replace(r, **facts) if r.rank == rank else r for r in record.ranks]
    return replace(record, ranks=tuple(ranks))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"workers": 1},
        {"workers": 4, "hosts": 2},
        {"threads": 2},
        {"jitter": 0.03},
        {"warmup_steps": 0},
        {"slow_rank": 1, "slowdown": 1.5},
    ],
)
def test_a_clean_run_raises_no_doubt(changes):
    assert [] == codes(make_record(**changes))


def test_a_failed_run_is_not_doubted_as_well():
    assert [] == codes(failed_record())


def test_overlapping_steps_make_throughput_impossible():
    record = with_column(make_record(), "start_s", lambda start: start / 2)
    assert ["impossible-throughput"] == codes(record)


def test_time_between_steps_is_not_lost_silently():
    record = with_column(make_record(), "start_s", lambda start: start * 1.2)
    assert ["gaps"] == codes(record)


def test_phases_longer_than_the_step_are_impossible():
    record = with_column(make_record(), "phase.forward", lambda seconds: seconds * 1.1)
    assert ["impossible-phases"] == codes(record)


def test_a_phase_of_negative_length_is_impossible():
    record = with_column(make_record(), "phase.data", lambda seconds: -seconds)
    assert ["impossible-phases"] == codes(record)


def test_ranks_in_step_that_take_different_time_do_not_add_up():
    record = make_record(jitter=0.0)
    slow = np.array(record.samples["rank"]) == 1
    for name in ("wall_s", "start_s"):
        record = with_column(record, name, lambda seconds: np.where(slow, seconds * 1.2, seconds))
    assert ["impossible-ranks"] == codes(record)
    apart = replace(record.trial.framework, strategy_class="asynchronous")
    assert [] == codes(replace(record, trial=replace(record.trial, framework=apart)))


def test_a_step_without_time_is_impossible():
    assert ["impossible-step-time"] == codes(with_column(make_record(), "wall_s", lambda wall: wall * 0))


def test_a_run_without_steps_that_calls_itself_ok_is_doubted():
    assert ["samples-none"] == codes(make_record(samples=None))


def test_more_cpu_than_the_pinned_cores_have_is_impossible():
    record = with_column(make_record(), "cpu_s", lambda cpu: cpu * 1.5)
    assert ["impossible-utilisation"] == codes(record)
    unpinned = replace(record, ranks=tuple(replace(rank, cores=()) for rank in record.ranks))
    assert ["over-budget"] == codes(unpinned)


def test_a_scheduler_tick_too_many_is_forgiven():
    record = make_record(workers=1, step_s=0.001, steps=10)
    once = np.arange(record.samples.num_rows) == 5
    assert [] == codes(with_column(record, "cpu_s", lambda cpu: cpu + 0.009 * once))


@pytest.mark.parametrize(
    "change,code",
    [
        (lambda loss: np.where(np.arange(len(loss)) == 7, np.nan, loss), "loss-not-finite"),
        (lambda loss: np.where(np.arange(len(loss)) == 7, np.inf, loss), "loss-not-finite"),
        (lambda loss: np.full_like(loss, 2.3), "loss-still"),
    ],
)
def test_a_loss_that_is_broken_or_does_not_move_is_told(change, code):
    assert [code] == codes(with_column(make_record(), "loss", change))


def test_a_framework_without_loss_is_not_asked_for_one():
    record = make_record()
    samples = record.samples
    nothing = pa.nulls(samples.num_rows, pa.float64())
    samples = samples.set_column(samples.column_names.index("loss"), "loss", nothing)
    assert [] == codes(replace(record, samples=samples))


def test_a_rank_that_did_not_report_is_named():
    record = make_record(workers=3)
    silent = replace(record, samples=record.samples.filter(pa.compute.not_equal(record.samples["rank"], 1)))
    (doubt,) = check(silent)
    assert "ranks-missing" == doubt.code
    assert "rank 1" in doubt.message


def test_a_rank_that_lost_steps_is_named():
    record = make_record()
    cut = replace(record, samples=record.samples.slice(0, record.samples.num_rows - 4))
    (doubt,) = check(cut)
    assert "steps-missing" == doubt.code
    assert "rank 1 has 36" in doubt.message


def test_few_steps_are_doubted():
    assert ["few-steps"] == codes(make_record(steps=5))


def test_ranks_with_models_of_different_size_are_told():
    record = replace(make_record(), inputs={})
    assert ["parameters-ranks"] == codes(with_rank(record, 1, parameters=5))


def test_a_model_that_is_not_the_graph_is_told():
    assert ["parameters-graph"] == codes(make_record(inputs={"parameters": 7}))


def test_a_rank_that_got_no_core_while_computing_is_starved():
    record = make_record(threads=2)
    starved = np.array(record.samples["rank"]) == 1
    record = with_column(record, "cpu_s", lambda cpu: np.where(starved, cpu * 0.4, cpu))
    (doubt,) = check(record)
    assert "starved" == doubt.code
    assert "rank 1" in doubt.message
    assert [] == codes(with_rank(record, 1, facts={"waits": True}))


def test_unsteady_steps_are_told():
    assert ["spread"] == codes(make_record(jitter=0.25))


@pytest.mark.parametrize("trend,word", [(0.3, "slower"), (-0.3, "faster")])
def test_a_run_that_becomes_slower_or_faster_drifts(trend, word):
    (doubt,) = check(make_record(trend=trend))
    assert "drift" == doubt.code
    assert word in doubt.message


@pytest.mark.parametrize(
    "when,facts",
    [
        ("during", {"busy_other_fraction": 0.2}),
        ("during", {"steal_fraction": 0.03}),
        ("during", {"cpu_pressure_some": 0.3}),
    ],
)
def test_a_noisy_neighbour_is_heard(when, facts):
    assert ["noisy-neighbour"] == codes(with_state(make_record(), when, **facts))


def test_load_counts_only_where_the_cpu_time_of_others_is_unknown():
    loaded = with_state(make_record(), "before", load1=3.0)
    assert [] == codes(loaded)
    unknown = {**loaded.state, "during": {"busy_other_fraction": None}}
    assert ["noisy-neighbour"] == codes(replace(loaded, state=unknown))


def test_cores_shared_on_purpose_are_no_neighbour():
    record = make_record(oversubscribe=True)
    assert [] == codes(with_state(record, "during", cpu_pressure_some=0.3))


def test_more_threads_than_physical_cores_are_told():
    record = make_record(workers=2)
    assert ["shared-cores"] == codes(replace(record, machine={**record.machine, "cores": 1}))


def test_a_host_that_is_not_silent_is_told():
    assert ["host-busy"] == codes(with_state(make_record(), "during", host_cpu_fraction=0.02))


def test_a_changed_clock_frequency_is_told():
    assert ["frequency"] == codes(with_state(make_record(), "after", cpu_freq_mhz=[2000.0, 2000.0]))
    assert [] == codes(with_state(make_record(), "after", cpu_freq_mhz=None))


def test_memory_close_to_the_machine_is_told():
    assert ["memory-near"] == codes(with_rank(make_record(), 0, peak_rss_bytes=15.5 * 2**30))


def test_a_machine_that_tells_nothing_is_not_doubted():
    assert [] == codes(make_record(state={}, machine={"id": "m"}))


def test_law_time_is_marked_and_asked_nothing_about_the_machine():
    record = make_record(simulated=True)
    for when, facts in (
        ("during", {"busy_other_fraction": 0.9, "host_cpu_fraction": 0.5}),
        ("after", {"load1": 9}),
    ):
        record = replace(record, state={**record.state, when: {**STATE[when], **facts}})
    record = with_column(record, "cpu_s", lambda cpu: cpu * 3)
    assert ["simulated"] == codes(record)


def test_impossibilities_come_first_and_every_doubt_says_what_to_do():
    record = with_column(make_record(steps=5, simulated=True), "start_s", lambda start: start / 2)
    doubts = check(record)
    assert ["impossible-throughput", "few-steps", "simulated"] == [doubt.code for doubt in doubts]
    assert all(doubt.message and doubt.hint for doubt in doubts)


def test_a_doubt_that_the_record_carries_is_not_repeated():
    assert [] == codes(make_record(steps=5, doubts=(Doubt(code="few-steps", message="5"),)))
