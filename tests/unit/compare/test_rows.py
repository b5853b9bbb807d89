from __future__ import annotations

import json

import pytest

from paceline.compare import compare
from paceline.record.record import Doubt
from records import failed_record, fused_record, make_record, make_trial

ROW_CONTRACT = {
    "trial",
    "framework",
    "strategy",
    "workload",
    "workers",
    "hosts",
    "network",
    "outcome",
    "throughput",
    "step_s",
    "efficiency",
    "phases",
    "warnings",
}
ESTIMATE = {"value", "low", "high", "level", "unit", "by", "n_runs"}


def repeats(count=3, **changes):
    return [make_record(repeat=repeat, **changes) for repeat in range(count)]


def test_json_has_the_names_that_others_rely_on():
    slow, fast = ({"step_s": s, "knobs": {"overlap": o}} for s, o in ((0.06, False), (0.05, True)))

    data = json.loads(json.dumps(compare([*repeats(**slow), *repeats(**fast)]).to_json(), allow_nan=False))

    row, pair = data["rows"][0], data["verdicts"][0]
    assert set(row) >= ROW_CONTRACT
    assert all(set(row[name]) == ESTIMATE for name in ("throughput", "step_s", "cpu_utilisation", "peak_rss_bytes"))
    assert set(row["phases"]["forward"]) == ESTIMATE | {"share", "by"}
    assert set(pair) >= {"a", "b", "ratio", "low", "high", "level", "p", "verdict"}


def test_throughput_is_batch_over_step_time_with_an_interval_around_it():
    (row,) = compare(repeats(step_s=0.05)).rows

    assert row.throughput.value == pytest.approx(2 * 32 / 0.05, rel=0.02)
    assert row.throughput.low < row.throughput.value < row.throughput.high
    assert row.throughput.value * row.step_s.value == pytest.approx(row.batch_global)
    assert (row.n_runs, row.throughput.n_runs, row.throughput.unit) == (3, 3, "samples/s")


def test_one_run_has_a_value_but_no_interval_and_a_warning_says_so():
    (row,) = compare([make_record()]).rows

    assert row.throughput.low is None
    assert row.throughput.high is None
    assert [warning.code for warning in row.warnings] == ["single-run"]


def test_phase_shares_fill_the_step():
    (row,) = compare(repeats(workers=2)).rows

    assert list(row.phases) == ["data", "forward", "backward", "update", "communication"]
    assert sum(phase.share for phase in row.phases.values()) == pytest.approx(1, abs=0.01)
    assert row.phases["communication"].time.unit == "s"


def test_row_tells_the_exchange_from_the_wait_for_it():
    (row,) = compare(repeats(workers=2, slow_rank=1, slowdown=1.5)).rows

    parts = row.communication_transfer_s.value + row.communication_waiting_s.value
    assert parts == pytest.approx(row.phases["communication"].time.value, rel=1e-3)
    assert compare(repeats(workers=1)).rows[0].communication_transfer_s is None


def test_what_is_derived_stands_apart_from_what_is_measured():
    (row,) = compare([fused_record(repeat=r, seconds={"forward": 0.4, "update": -0.01}) for r in range(3)]).rows

    assert {name: phase.by for name, phase in row.phases.items()} == {"data": "timers", "step": "timers"}
    assert {name: phase.by for name, phase in row.phases_derived.items()} == dict.fromkeys(
        ("forward", "update"), "differences"
    )
    assert not row.phases_derived["forward"].below_noise
    assert row.phases_derived["update"].below_noise


def test_row_keeps_set_up_compilation_and_first_step_apart():
    (row,) = compare([fused_record(repeat=r, compile_s=1.5) for r in range(3)]).rows

    assert (row.setup_s.value, row.compile_s.value) == pytest.approx((2.0, 1.5))
    assert row.first_step_s.value > row.step_s.value
    assert compare(repeats()).rows[0].compile_s is None


def test_row_keeps_compilation_in_the_first_step_apart_from_that_ahead_of_it():
    (row,) = compare(repeats(facts={"compile_in_first_step_s": 0.2})).rows

    assert row.compile_in_first_step_s.value == pytest.approx(0.2)
    assert row.compile_s is None


@pytest.mark.parametrize("fact", ["text", {}, {"phases": "update"}, {"phases": ["update"], "why": "alone"}])
def test_mixture_of_phases_in_another_form_is_left_alone(fact):
    assert compare(repeats(facts={"phases_mixed": fact})).rows[0].phases_mixed is None


def test_trial_without_records_is_a_row_that_was_not_run():
    ran, waits, refused = (make_trial(workers=n) for n in (1, 2, 4))

    rows = compare(
        repeats(trial=ran), trials=[ran, waits, refused], skipped={refused.id: "more cores than there are"}
    ).rows

    assert [row.outcome for row in rows] == ["ok", "not run", "skipped"]
    assert rows[2].reason == "more cores than there are"
    assert rows[1].throughput is None


def test_rows_follow_the_order_of_the_trials_and_leave_others_out():
    one, two, stranger = (make_trial(workers=n) for n in (1, 2, 4))
    records = [make_record(trial=trial) for trial in (stranger, two, one)]

    assert [row.workers for row in compare(records, trials=[one, two]).rows] == [1, 2]


def test_failed_trial_keeps_its_word_and_reason():
    (row,) = compare([failed_record("timed_out", repeat=r) for r in range(2)]).rows

    assert row.outcome == "timed_out"
    assert row.reason == "2 of 2 runs: it broke (during setup)"
    assert (row.n_runs, row.n_failed) == (0, 2)


def test_trial_that_fails_now_and_then_is_partly_failed_and_counted():
    (row,) = compare([*repeats(2), failed_record(repeat=2)]).rows

    assert row.outcome == "partly failed"
    assert row.reason.startswith("1 of 3 runs")
    assert (row.n_runs, row.n_failed) == (2, 1)


def test_failure_before_the_environment_was_seen_makes_no_row_of_its_own():
    assert len(compare([*repeats(2), failed_record(repeat=2, environment={})]).rows) == 1


def test_retry_replaces_the_failed_attempt_and_is_told():
    (row,) = compare([failed_record(repeat=0), make_record(repeat=0, attempt=1), make_record(repeat=1)]).rows

    assert (row.outcome, row.n_runs, row.n_failed) == ("ok", 2, 0)
    assert "retried" in [warning.code for warning in row.warnings]


def test_same_doubt_in_several_runs_is_one_warning_with_a_count():
    doubts = [(Doubt(code="spread", message=f"steps vary by {n} %", hint="be quiet"),) for n in (12, 15)]
    records = [make_record(repeat=r, doubts=d) for r, d in enumerate([*doubts, ()])]

    (row,) = compare(records).rows

    (warning,) = row.warnings
    assert (warning.code, warning.message, warning.n_runs) == ("spread", "steps vary by 12 %", 2)


def test_same_trial_on_two_machines_is_two_rows_with_keys_of_their_own():
    comparison = compare([*repeats(machine_id="a"), *repeats(machine_id="b", step_s=0.1)])

    assert len({row.trial for row in comparison.rows}) == 1
    assert [row.key.split("@")[1] for row in comparison.rows] == ["a", "b"]
    assert [row.label for row in comparison.rows] == ["2 workers · on a", "2 workers · on b"]
    assert [note.code for note in comparison.notes] == ["machines"]


def test_labels_say_only_what_sets_rows_apart():
    comparison = compare([make_record(knobs={"overlap": o, "bucket": 25}) for o in (True, False)])

    assert [row.label for row in comparison.rows] == ["overlap=on", "overlap=off"]
    assert comparison.shared == "torch ddp · resnet20 · batch 32 per worker · 2 workers · 1 thread per worker · cpu"


def test_knobs_of_one_framework_do_not_clutter_the_labels_of_two():
    torch = make_trial(knobs={"bucket": 25})
    jax = make_trial(framework="jax", strategy="flat", environment="jax", knobs={"flatten": True})

    labels = [row.label for row in compare([make_record(trial=t) for t in (torch, jax)]).rows]

    assert labels == ["torch ddp", "jax flat"]


def test_run_without_a_measured_step_is_not_called_good():
    (row,) = compare([make_record(samples=None)]).rows

    assert (row.outcome, row.throughput) == ("no numbers", None)


def test_nothing_recorded_compares_to_nothing():
    assert compare([]).to_json()["rows"] == []
