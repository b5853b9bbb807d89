"""Splits of our own records, fixed in a file before the test runs, and what all models make of them.

[split]
records = "../records/lab.zip"            # an archive of records or a store, beside the file
only = "model=resnet44"                   # which of them it is about; left out: all
fit = "hosts<=2 and network!=300Mbit"     # columns: workers, hosts, batch, network, framework, model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paceline.errors import SpecError, documented
from paceline.model.fitting.fit import fit
from paceline.model.fitting.observe import Training
from paceline.model.fitting.problem import Evidence
from paceline.model.forecast.predict import predict
from paceline.model.foreign.tables import MeasuredPoint, Row, matching
from paceline.model.validation.baselines import BASELINES
from paceline.model.validation.structural import Structural
from paceline.model.validation.validate import GroupResult
from paceline.plan.pace import DILATION
from paceline.spec.toml_file import read_toml

LEAST_TRIALS = 1
"""On each side. A row is a trial here, the mean of its runs, and not one of many readings of a table."""
COLUMNS = ("workers", "hosts", "batch", "network", "framework", "model", "strategy", DILATION)


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Which records are fitted on."""

    records: str
    condition: str
    only: str | None = None

    def concerns(self, training: Training) -> bool:
        return self.only is None or matching(self.only, COLUMNS)(row_of(training))

    def fits(self, training: Training) -> bool:
        return matching(self.condition, COLUMNS)(row_of(training))


def read_split(path: Path) -> Split:
    """A split file.

    Raises:
        SpecError: it cannot be read, or lacks a key.
    """
    form = documented("how-to/validate")
    data: dict[str, Any] = read_toml(path, kind="split", where=form, form=form).get("split", {})
    missing = [key for key in ("records", "fit") if not isinstance(data.get(key), str)]
    if missing:
        raise SpecError(f"{path}: [split] lacks {', '.join(missing)}", hint=form)
    return Split(records=data["records"], condition=data["fit"], only=data.get("only"))


def row_of(training: Training) -> Row:
    """The columns of a trial, as text."""
    trial = training.trial
    network = trial.cluster.network
    return {
        "workers": str(trial.workers),
        "hosts": str(trial.cluster.hosts),
        "batch": str(trial.workload.batch_per_worker),
        "network": network.label if network else "none",
        "framework": trial.framework.name,
        "model": trial.workload.name,
        "strategy": trial.framework.strategy,
        DILATION: f"{trial.cluster.pace.dilation:g}",
    }


def validate_family(evidence: Evidence, known: Sequence[Training], asked: Sequence[Training]) -> GroupResult:
    """Our calibrated model and all others, fitted on the same trials."""
    calibration = fit(replace(evidence, trainings=tuple(known)))
    said = [predict(calibration, one.conditions) for one in asked]
    predicted = {Structural.name: np.array([one.step.value for one in said])}
    points = [_point(one) for one in asked]
    for make in BASELINES:
        model = make()
        model.fit([_point(one) for one in known])
        predicted[model.name] = np.maximum(model.predict(points), 1e-12)
    intervals = np.array([one.step.interval[0] for one in said]), np.array([one.step.interval[1] for one in said])
    return GroupResult(
        group=evidence.family.label,
        n_fit=len(known),
        points=tuple(points),
        predicted=predicted,
        intervals=intervals,
        noise=calibration.noise,
        least_rows=LEAST_TRIALS,
    )


def _point(training: Training) -> MeasuredPoint:
    asked = training.conditions
    return MeasuredPoint(
        group="",
        workers=asked.workers,
        hosts=asked.hosts,
        batch=asked.samples,
        step_s=training.step_s,
        row=row_of(training),
    )
