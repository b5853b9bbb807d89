import numpy as np
import pyarrow as pa
import pytest

from paceline.record import summarize
from records import failed_record, make_record


def table(rows):
    return pa.Table.from_pylist(
        [
            {
                "rank": rank,
                "step": step,
                "kind": kind,
                "start_s": 0.0,
                "wall_s": wall,
                "cpu_s": cpu,
                "loss": loss,
                "phase.forward": wall - exchange,
                "phase.communication": exchange,
            }
            for rank, step, kind, wall, cpu, loss, exchange in rows
        ]
    )


TWO_RANKS = table(
    [
        (0, 0, "first", 9.0, 9.0, 4.0, 0.0),
        (0, 1, "measured", 2.0, 1.0, 3.0, 0.5),
        (0, 2, "measured", 4.0, 2.0, 1.0, 0.5),
        (1, 0, "first", 8.0, 8.0, 2.0, 0.0),
        (1, 1, "measured", 2.0, 2.0, 3.0, 1.0),
        (1, 2, "measured", 4.0, 4.0, 3.0, 0.1),
    ]
)


@pytest.fixture
def summary():
    return summarize(make_record(samples=TWO_RANKS, batch=6))


def test_throughput_adds_ranks_and_weighs_steps_by_their_time(summary):
    # Each rank: 6 samples × 2 steps in 6 s.
    assert 4.0 == pytest.approx(summary.throughput)
    assert 3.0 == pytest.approx(summary.step_s)


def test_warm_up_is_not_in_the_numbers_but_the_first_step_is_told(summary):
    assert 9.0 == summary.first_step_s
    assert (2, 2) == (summary.n_steps, summary.n_ranks)


def test_phases_are_means_over_ranks_and_steps(summary):
    seconds = {name: phase.seconds for name, phase in summary.phases.items()}
    assert {"forward": 2.475, "communication": 0.525} == pytest.approx(seconds)
    assert 1.0 == pytest.approx(sum(phase.share for phase in summary.phases.values()))
    assert {"timers"} == {phase.by for phase in summary.phases.values()}


def test_communication_is_transfer_plus_waiting(summary):
    assert 0.3 == pytest.approx(summary.communication_transfer_s)
    assert 0.225 == pytest.approx(summary.communication_waiting_s)


def test_utilisation_is_cpu_over_wall_over_cores(summary):
    assert 0.75 == pytest.approx(summary.cpu_utilisation)


def test_memory_is_summed_and_the_largest_rank_told(summary):
    assert (800 * 2**20, 400 * 2**20) == (summary.peak_rss_bytes, summary.peak_rss_rank_bytes)


def test_loss_is_the_mean_of_the_ranks_at_either_end(summary):
    assert (3.0, 2.0) == (summary.loss_first, summary.loss_last)


def test_a_run_without_measured_steps_has_no_summary():
    assert summarize(failed_record()) is None
    assert summarize(make_record(samples=TWO_RANKS.slice(0, 1))) is None


def test_a_single_worker_does_not_communicate():
    summary = summarize(make_record(workers=1))
    assert summary.communication_transfer_s is None
    assert "communication" not in summary.phases


def test_a_slow_rank_makes_the_others_wait():
    summary = summarize(make_record(slow_rank=1, slowdown=1.5, jitter=0.0))
    # Of 40 ms of computing the slow rank takes 20 ms more; one of two ranks waits for it.
    assert 0.01 == pytest.approx(summary.communication_transfer_s)
    assert 0.01 == pytest.approx(summary.communication_waiting_s)


def test_ranks_may_have_different_numbers_of_steps():
    rank_1 = np.array(TWO_RANKS["rank"]) == 1
    last = np.array(TWO_RANKS["step"]) == 2
    summary = summarize(make_record(samples=TWO_RANKS.filter(pa.array(~(rank_1 & last))), batch=6))
    assert 1 == summary.n_steps
    assert 2.0 + 3.0 == pytest.approx(summary.throughput)
