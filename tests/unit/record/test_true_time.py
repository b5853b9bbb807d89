"""A run on a site in slow motion has the times of the cluster that is emulated, and one step time everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.compare import compare
from paceline.explain.spent import mean_step_s
from paceline.model.foreign.measured_step import measured_spans
from paceline.plan.pace import true_time_words
from paceline.record.summary import summarize
from paceline.record.true_time import true_summary
from paceline.report.text import comparison_table
from records import make_record

TIMES = (
    "step_s",
    "communication_transfer_s",
    "communication_waiting_s",
    "first_step_s",
    "setup_s",
)


def slowed(dilation=2, **changes):
    record = make_record(**changes)
    cluster = replace(record.trial.cluster, options={"core_share": 1.0, "dilation": dilation})
    return replace(record, trial=replace(record.trial, cluster=cluster))


def test_every_time_is_divided_by_the_dilation_and_throughput_multiplied():
    record = slowed(slow_rank=1, slowdown=1.2)
    recorded, true = summarize(record), true_summary(record)

    assert true.throughput == pytest.approx(2 * recorded.throughput)
    for name in TIMES:
        assert getattr(true, name) == pytest.approx(getattr(recorded, name) / 2), name
    for name, phase in recorded.phases.items():
        assert true.phases[name] == replace(phase, seconds=pytest.approx(phase.seconds / 2))
    assert true.lockstep.step_s == pytest.approx(recorded.lockstep.step_s / 2)
    assert true.lockstep.phases_s["forward"] == pytest.approx(recorded.lockstep.phases_s["forward"] / 2)
    assert true.lockstep.passes.longest_s == pytest.approx(recorded.lockstep.passes.longest_s / 2)
    assert true.lockstep.passes.variance == recorded.lockstep.passes.variance
    assert true.lockstep.exchange_s == pytest.approx(recorded.lockstep.exchange_s / 2)


def test_what_is_no_time_stays():
    record = slowed()
    recorded, true = summarize(record), true_summary(record)

    for name in ("cpu_utilisation", "peak_rss_bytes", "loss_last", "n_steps", "n_ranks"):
        assert getattr(true, name) == getattr(recorded, name), name


def test_run_without_slow_motion_has_its_own_numbers():
    record = make_record()

    assert true_summary(record) == summarize(record)
    assert true_summary(replace(record, samples=None)) is None


def test_no_site_slows_the_times_of_a_law():
    assert true_summary(slowed(simulated=True)) == summarize(slowed(simulated=True))


def test_table_explanation_and_trace_have_the_same_step():
    records = [slowed(workers=n, step_s=0.1 * n, repeat=r) for n in (1, 2) for r in range(3)]
    comparison = compare(records)

    for row in comparison.rows:
        runs = [record for record in records if record.trial.id == row.trial]
        assert row.step_s.value == pytest.approx(mean_step_s(runs))
        spans = measured_spans(runs[0])
        step = sum(span.duration_s for span in spans if span.rank == 0)
        assert step == pytest.approx(row.step_s.value, rel=0.05)
    assert comparison.rows[0].step_s.value == pytest.approx(0.05, rel=0.05)
    assert comparison.rows[0].throughput.value == pytest.approx(32 / 0.05, rel=0.05)


def test_one_line_says_which_time_it_is():
    dilated = " ".join(comparison_table(compare([slowed(repeat=r) for r in range(3)])).split())
    plain = comparison_table(compare([make_record(repeat=r) for r in range(3)]))

    assert dilated.count("; times as on the emulated cluster: the lab's dilation of 2 is divided out)") == 1
    assert "emulated" not in plain
    assert true_time_words([1.0, 0.5, 0.25]).endswith("dilation of 2 or 4 is divided out")
    assert true_time_words([1.0]) == ""
