"""What we say about the model's errors on our own records: computed again from the records that are committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.model.validation.split import read_split
from paceline.model.validation.structural import Structural
from paceline.record import MEASUREMENT
from paceline.record.archive import read_archive
from paceline.recorded import split_validation

VALIDATION = Path(__file__).parents[2] / "validation"
SPLITS = sorted((VALIDATION / "splits").glob("*.toml"))
RECORDS = sorted((VALIDATION / "records").glob("*.zip"))
ASKED = [("resnet44", 17, 3.0), ("transformer", 15, 3.0), ("alexnet", 8, 3.0), ("resnet50", 8, 1.5)]
"""Models that were trained with PyTorch on two networks and more, trials to predict, and how much worse all others are."""


@pytest.mark.parametrize(("name", "asked", "worse"), ASKED)
def test_steps_that_were_not_fitted_are_predicted_as_well_as_the_pages_say(name, asked, worse):
    validation = split_validation(VALIDATION / "splits" / f"{name}.toml")
    (group,) = validation.groups
    ours, others = group.figures(Structural.name), [group.figures(model) for model in validation.models[1:]]

    assert len(group.points) == asked
    assert ours.mape <= 0.05
    assert ours.p95 <= 0.15
    assert ours.spearman >= 0.95
    assert ours.coverage_low <= 0.9 <= ours.coverage_high
    assert all(figures.mape > worse * ours.mape for figures in others)


def test_other_frameworks_are_predicted_as_well_as_the_pages_say():
    validation = split_validation(VALIDATION / "splits" / "frameworks.toml")
    figures = [group.figures(Structural.name) for group in validation.groups]

    assert len(figures) == 5
    assert all(len(group.points) == 2 for group in validation.groups)
    assert all(errors.max <= 0.10 and errors.coverage == 1 for errors in figures)
    assert validation.overall(Structural.name)["mape"] <= 0.06


@pytest.mark.parametrize("name", ["alexnet-faster", "resnet50-faster"])
def test_a_network_faster_than_any_that_was_seen_lies_in_its_interval(name):
    (group,) = split_validation(VALIDATION / "splits" / f"{name}.toml").groups
    ours = group.figures(Structural.name)

    assert len(group.points) == 6
    assert ours.coverage == 1
    assert ours.mape <= 0.10


def test_records_are_few_megabytes_and_five_runs_a_trial():
    runs: dict[str, int] = {}
    for record in (record for path in RECORDS for record in read_archive(path)):
        plain = record.kind == MEASUREMENT and not record.trial.measure.layers
        if plain and record.trial.workload.collective is None:
            runs[record.trial.id] = runs.get(record.trial.id, 0) + 1

    assert sum(path.stat().st_size for path in RECORDS) < 5e6
    assert set(runs.values()) == {5}


@pytest.mark.parametrize("path", SPLITS, ids=lambda path: path.stem)
def test_every_split_can_be_read_and_its_records_are_there(path):
    assert path.parent / read_split(path).records in [path.parent / "../records" / archive.name for archive in RECORDS]
