"""Splits of our own records, fixed in a file before the test runs, and the predictions of all models for them.

[split]
records = "../records/lab.zip"            # an archive of records or a store, beside the file
only = "model=resnet44"                   # which records to use; by default all
fit = "hosts<=2 and network!=300Mbit"     # columns: workers, hosts, batch, network, framework, model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
"""Smallest number of trials on each side. A trial is the mean of several runs, unlike one row of a table."""
COLUMNS = ("workers", "hosts", "batch", "network", "framework", "model", "strategy", DILATION)


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Which records a model is fitted on."""

    records: str
    condition: str
    only: str | None = None

    def concerns(self, training: Training) -> bool:
        return self.only is None or matching(self.only, COLUMNS)(row_of(training))

    def fits(self, training: Training) -> bool:
        return matching(self.condition, COLUMNS)(row_of(training))


def read_split(path: Path) -> Split:
    """Read a split file.

    Raises:
        SpecError: The file cannot be read or lacks a key.
    """
    form = documented("how-to/validate")
    data: dict[str, object] = read_toml(path, kind="split", where=form, form=form).get("split", {})
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    missing = [key for key in ("records", "fit", *(data.keys() & {"only"})) if key not in texts]
    if missing:
        raise SpecError(f"{path}: [split] lacks {', '.join(missing)} as text", hint=form)
    return Split(records=texts["records"], condition=texts["fit"], only=texts.get("only"))


def row_of(training: Training) -> Row:
    """The columns of a trial as text."""
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


def validate_family(evidence: Evidence, fitted: Sequence[Training], held_out: Sequence[Training]) -> GroupResult:
    """Fit our model and all baselines on the same trials and predict the others."""
    calibration = fit(replace(evidence, trainings=tuple(fitted)))
    predictions = [predict(calibration, training.conditions) for training in held_out]
    predicted = {Structural.name: np.array([prediction.step.value for prediction in predictions])}
    points = [_point(training) for training in held_out]
    for make in BASELINES:
        model = make()
        model.fit([_point(training) for training in fitted])
        predicted[model.name] = np.maximum(model.predict(points), 1e-12)
    intervals = (
        np.array([prediction.step.interval[0] for prediction in predictions]),
        np.array([prediction.step.interval[1] for prediction in predictions]),
    )
    return GroupResult(
        group=evidence.family.label,
        n_fit=len(fitted),
        points=tuple(points),
        predicted=predicted,
        intervals=intervals,
        noise=calibration.noise,
        least_rows=LEAST_TRIALS,
    )


def _point(training: Training) -> MeasuredPoint:
    conditions = training.conditions
    return MeasuredPoint(
        group="",
        workers=conditions.workers,
        hosts=conditions.hosts,
        batch=conditions.samples,
        step_s=training.step_s,
        row=row_of(training),
    )
