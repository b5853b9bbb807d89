"""What we say about the model's errors on our own records: computed again from the records that are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.model.split import read_split
from paceline.model.structural import Structural
from paceline.modelbench import split_validation
from paceline.record.archive import read_archive

VALIDATION = Path(__file__).parents[2] / "validation"
MEASURED = ("resnet44", "transformer")
"""Splits whose records are there."""


@pytest.mark.parametrize("name", MEASURED)
def test_steps_that_were_not_fitted_are_predicted_as_well_as_the_pages_say(name):
    found = split_validation(VALIDATION / "splits" / f"{name}.toml")
    (group,) = found.groups
    ours, others = group.figures(Structural.name), [group.figures(one) for one in found.models[1:]]

    assert len(group.points) >= 15
    assert ours.mape <= 0.05
    assert ours.p95 <= 0.15
    assert ours.spearman >= 0.95
    assert ours.coverage_low <= 0.9 <= ours.coverage_high
    assert all(one.mape > 3 * ours.mape for one in others)


def test_records_are_few_megabytes_and_five_runs_a_trial():
    archive = VALIDATION / "records" / "lab.zip"
    runs: dict[str, int] = {}
    for record in read_archive(archive):
        if not record.trial.measure.layers and record.trial.workload.collective is None:
            runs[record.trial.id] = runs.get(record.trial.id, 0) + 1

    assert archive.stat().st_size < 5e6
    assert set(runs.values()) == {5}


def test_every_split_can_be_read():
    for path in sorted((VALIDATION / "splits").glob("*.toml")):
        assert read_split(path).records == "../records/lab.zip"
