"""Where phase numbers come from: measured ones, derived ones, and the exchange without its waiting."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from paceline.record import check, samples_table, summarize, to_csv, to_json
from records import fused_record, make_record


def derived_of(record):
    return {name: phase.seconds for name, phase in summarize(record).phases_derived.items()}


def codes(record):
    return [doubt.code for doubt in check(record)]


def test_measured_phases_carry_the_records_own_provenance():
    for by in ("timers", "law"):
        phases = summarize(make_record(phases_by=by)).phases
        assert {by} == {phase.by for phase in phases.values()}


def test_differences_fill_the_measured_step_and_no_more():
    summary = summarize(fused_record(seconds={"forward": 0.03, "backward": 0.06, "update": 0.01}))

    assert ["data", "step"] == list(summary.phases)
    total = sum(phase.seconds for phase in summary.phases_derived.values())
    assert total == pytest.approx(summary.phases["step"].seconds)
    assert summary.phases_derived["backward"].seconds == pytest.approx(0.6 * summary.phases["step"].seconds)
    assert {"differences"} == {phase.by for phase in summary.phases_derived.values()}


def test_operators_need_not_fill_the_step():
    record = fused_record(by="operators", seconds={"forward": 0.01, "backward": 0.02})
    assert {"forward": 0.01, "backward": 0.02} == pytest.approx(derived_of(record))


def test_derived_phases_follow_the_whole_step_that_was_timed_beside_them():
    record = fused_record(by="operators", seconds={"forward": 0.05}, step_s_derived=0.1, jitter=0.0)
    step = summarize(record).phases["step"].seconds
    assert derived_of(record)["forward"] == pytest.approx(step / 2)


def test_negative_difference_is_kept_as_it_is():
    assert derived_of(fused_record(seconds={"forward": 0.05, "update": -0.001}))["update"] < 0


def test_record_of_the_first_adapter_is_read_as_differences():
    record = fused_record()
    old = {"phases_derived": {"how": "derived: differences …", "seconds": {"forward": 0.05}}}
    record = replace(record, ranks=tuple(replace(rank, facts=old) for rank in record.ranks))
    assert "differences" == summarize(record).phases_derived["forward"].by


@pytest.mark.parametrize(
    "fact",
    [
        "text",
        {},
        {"seconds": 3},
        {"seconds": {}},
        {"by": "magic", "seconds": {"forward": 1.0}},
        {"by": "differences", "seconds": {"forward": None, "backward": "long", "update": float("nan")}},
    ],
)
def test_fact_of_another_form_is_left_alone(fact):
    record = fused_record()
    record = replace(record, ranks=tuple(replace(rank, facts={"phases_derived": fact}) for rank in record.ranks))
    assert {} == summarize(record).phases_derived


def test_phase_that_was_timed_is_not_derived_again():
    assert ["forward"] == list(derived_of(fused_record(seconds={"data": 0.01, "forward": 0.04})))


def test_asynchronous_ranks_do_not_wait_for_each_other():
    summary = summarize(make_record(strategy_class="asynchronous"))
    assert (None, None) == (summary.communication_transfer_s, summary.communication_waiting_s)


def test_derived_phases_that_do_not_fit_the_step_are_doubted():
    fits = fused_record(seconds={"forward": 0.03, "backward": 0.02}, step_s=0.05)
    slower = fused_record(seconds={"forward": 0.06, "backward": 0.04}, step_s=0.05)
    below = fused_record(seconds={"forward": 0.065, "update": -0.015}, step_s=0.05)

    assert "derived-phases" not in codes(fits)
    assert "derived-phases" in codes(slower)
    assert "derived-phases" in codes(below)


def test_export_says_where_each_number_comes_from():
    record = fused_record(seconds={"forward": 0.03, "backward": 0.02}, compile_s=1.5)
    (row,) = csv.DictReader(io.StringIO(to_csv([record])))
    summary = to_json([record])["records"][0]["summary"]

    assert ("timers", "differences") == (row["phases_by"], row["derived_by"])
    assert float(row["derived.forward_s"]) == pytest.approx(summary["phases_derived"]["forward"]["seconds"])
    assert float(row["phase.step_s"]) == pytest.approx(summary["phases"]["step"])
    assert (1.5, 1.5) == (float(row["compile_s"]), summary["compile_s"])
    assert {"timers"} == set(samples_table([record])["phases_by"].to_pylist())
