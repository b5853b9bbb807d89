"""Curves of a report: each family that is calibrated, at the sizes that were run and some beyond."""

from __future__ import annotations

from dataclasses import replace

from paceline.compare import compare
from paceline.model.fitting.fit import family_of
from paceline.model.forecast.catalogue import device
from paceline.model.forecast.guess import guess
from paceline.report.outlook import curves
from paceline.workloads import load_workload
from records import MACHINE, make_record


def family(counts=(1, 2, 4), **changes):
    return [make_record(workers=n, repeat=r, **changes) for n in counts for r in range(2)]


def strong(counts=(1, 2, 4), batch=32):
    return [record for n in counts for record in family((n,), batch=batch // n, scaling="strong")]


def calibration_of(record):
    guessed = guess(load_workload("resnet20", {}), device("V100-SXM2"))
    return replace(guessed, family=family_of(record.trial, MACHINE["id"]))


def curves_of(records, calibrated=None):
    return curves(compare(records), [record.trial for record in records], [calibration_of(calibrated or records[0])])


def test_curve_has_the_sizes_that_were_run_and_three_doublings_more():
    records = family()
    (curve,) = curves_of(records).values()

    assert [one.conditions.workers for one in curve] == [1, 2, 4, 8, 16, 32]
    assert {one.conditions.batch for one in curve} == {32.0}


def test_curve_is_found_by_the_row_that_its_family_begins_with():
    records = [*family(knobs={"k": 0}), *family(knobs={"k": 1})]
    comparison = compare(records)

    assert set(curves_of(records)) == {comparison.rows[0].key}


def test_strong_scaling_shares_the_batch_and_stops_where_it_cannot_be_shared():
    (curve,) = curves_of(strong()).values()

    assert [(one.conditions.workers, one.conditions.batch) for one in curve] == [
        (1, 32.0),
        (2, 16.0),
        (4, 8.0),
        (8, 4.0),
        (16, 2.0),
        (32, 1.0),
    ]
    (odd,) = curves_of(strong((1, 2), batch=12)).values()
    assert [one.conditions.workers for one in odd] == [1, 2, 4]


def test_other_knobs_and_single_sizes_have_no_curve():
    assert curves_of(family(), calibrated=make_record(knobs={"k": 1})) == {}
    assert curves_of(family((2,))) == {}
    assert curves_of(family((1,))) == {}


def test_dilated_rows_are_in_the_time_of_the_model():
    records = family()
    slowed = [
        replace(record, trial=replace(record.trial, cluster=replace(record.trial.cluster, options={"dilation": 2})))
        for record in records
    ]

    (plain,), (dilated,) = curves_of(records).values(), curves_of(slowed).values()
    assert [size.throughput for size in dilated] == [size.throughput for size in plain]
