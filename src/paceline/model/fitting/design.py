"""Experiment design: the run that would improve a calibration most. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import NAMES
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.terms import steps_s
from paceline.model.fitting.calibration import Calibration
from paceline.model.fitting.problem import Evidence
from paceline.spec.study import Study, StudyValue

LEAST_GAIN = 0.05
"""Smallest gain worth a run: how much it narrows the prediction of the target."""
TRUST = 100.0
"""Weight of a measured step relative to the prior of a parameter."""
FARTHER = 4
"""The target is this many times the workers that were run."""


def next_run(
    families: Sequence[tuple[Evidence, Calibration]], study: Study, cores: int
) -> tuple[Mapping[str, tuple[StudyValue, ...]], str] | None:
    """(axes to change, reason) of the run that best predicts FARTHER times the workers; None if no run helps."""
    best: tuple[float, Mapping[str, tuple[StudyValue, ...]], str] | None = None
    for evidence, calibration in families:
        measured = {_key(training.conditions) for training in evidence.trainings}
        rows = np.array(
            [
                gradient(calibration.vector, training.conditions, calibration.straggling)
                for training in evidence.trainings
            ]
        )
        last = max(evidence.trainings, key=lambda training: training.conditions.workers).conditions
        target = last.change(workers=last.workers * FARTHER, hosts=last.hosts * FARTHER)
        target_row = gradient(calibration.vector, target, calibration.straggling)
        before = _variance(rows, target_row)
        for axes, conditions, words in _candidates(evidence, study, cores):
            if _key(conditions) in measured:
                continue
            row = gradient(calibration.vector, conditions, calibration.straggling)
            gain = 1 - _variance(np.vstack([rows, row]), target_row) / before
            if gain > max(LEAST_GAIN, best[0] if best else 0.0):
                best = (gain, axes, f"{evidence.family.label}: {words} would narrow the prediction by {gain:.0%}")
    return (best[1], best[2]) if best else None


def gradient(vector: Floats, conditions: Conditions, straggling: Straggling) -> Floats:
    """Derivative of the logarithm of step time by the logarithm of each parameter."""
    moved = np.where(np.eye(len(NAMES)) > 0, vector * 1.01 + 1e-12, vector)
    step_s, *moved_s = steps_s(np.vstack([vector, moved]), conditions, straggling)
    derivatives: Floats = np.log(np.array(moved_s) / step_s) / 0.01
    return derivatives


def _variance(rows: Floats, target: Floats) -> float:
    """Variance of the logarithm of the target step, up to a factor, once these rows are measured."""
    information = np.eye(rows.shape[1]) + TRUST * rows.T @ rows
    return float(target @ np.linalg.solve(information, target))


def _key(conditions: Conditions) -> tuple[object, ...]:
    return conditions.workers, conditions.hosts, conditions.batch, conditions.bandwidth, conditions.latency_s


def _candidates(
    evidence: Evidence, study: Study, cores: int
) -> list[tuple[Mapping[str, tuple[StudyValue, ...]], Conditions, str]]:
    """Runs that this site could make: another batch, or more workers per host."""
    first = min(evidence.trainings, key=lambda training: training.conditions.workers).conditions
    last = max(evidence.trainings, key=lambda training: training.conditions.workers).conditions
    threads = evidence.family.threads
    candidates: list[tuple[Mapping[str, tuple[StudyValue, ...]], Conditions, str]] = []
    for conditions in (first, last):
        for factor in (0.5, 2.0):
            batch = max(1, round(conditions.samples * factor))
            axes = {"workload.batch_per_worker": (batch,), "workload.batch_global": (None,)}
            candidates.append(
                (
                    {**axes, **_size(conditions)},
                    conditions.change(batch=batch / conditions.passes),
                    f"batch {batch} with {conditions.workers} worker(s)",
                )
            )
    more = last.workers * 2
    if last.hosts == 1 and more * threads <= cores:
        axes = {"cluster.workers_per_host": (more,)}
        candidates.append((axes, last.change(workers=more), f"{more} workers"))
    return [candidate for candidate in candidates if set(candidate[0]) <= set(study.axes)]


def _size(conditions: Conditions) -> dict[str, tuple[StudyValue, ...]]:
    return {"cluster.hosts": (conditions.hosts,), "cluster.workers_per_host": (conditions.workers // conditions.hosts,)}
