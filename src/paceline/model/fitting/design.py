"""Which run would tell most: what a calibration proposes to measure next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import NAMES
from paceline.model.equations.step import Floats
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration
from paceline.model.fitting.problem import Evidence
from paceline.spec.study import Study

LEAST_GAIN = 0.05
"""A run that narrows the prediction of the target by less is not worth its time."""
TRUST = 100.0
"""How sure a measured step is, against what is assumed of a parameter: 1 % against 10 times itself."""
FARTHER = 4
"""The target: so many times the workers that were run."""


def next_run(
    families: Sequence[tuple[Evidence, Calibration]], study: Study, cores: int
) -> tuple[Mapping[str, tuple[object, ...]], str] | None:
    """(axes to change, why in words) of the run that tells most about FARTHER times the workers; None: none does."""
    best: tuple[float, Mapping[str, tuple[object, ...]], str] | None = None
    for evidence, calibration in families:
        known = {_key(one.conditions) for one in evidence.trainings}
        rows = np.array(
            [gradient(calibration.vector, one.conditions, calibration.straggling) for one in evidence.trainings]
        )
        last = max(evidence.trainings, key=lambda one: one.conditions.workers).conditions
        target = last.change(workers=last.workers * FARTHER, hosts=last.hosts * FARTHER)
        wanted = gradient(calibration.vector, target, calibration.straggling)
        before = _variance(rows, wanted)
        for axes, conditions, words in _candidates(evidence, study, cores):
            if _key(conditions) in known:
                continue
            row = gradient(calibration.vector, conditions, calibration.straggling)
            gain = 1 - _variance(np.vstack([rows, row]), wanted) / before
            if gain > max(LEAST_GAIN, best[0] if best else 0.0):
                best = (gain, axes, f"{evidence.family.label}: {words} would narrow the prediction by {gain:.0%}")
    return (best[1], best[2]) if best else None


def gradient(vector: Floats, conditions: Conditions, straggling: Straggling) -> Floats:
    """Derivative of the logarithm of a step by the logarithm of each parameter."""
    step = step_terms(vector, conditions, straggling).step_s
    found = np.zeros(len(NAMES))
    for index in range(len(NAMES)):
        moved = vector.copy()
        moved[index] = moved[index] * 1.01 + 1e-12
        found[index] = np.log(step_terms(moved, conditions, straggling).step_s / step) / 0.01
    return found


def _variance(rows: Floats, wanted: Floats) -> float:
    """Of the logarithm of the wanted step, up to a factor, once these rows are measured."""
    known = np.eye(rows.shape[1]) + TRUST * rows.T @ rows
    return float(wanted @ np.linalg.solve(known, wanted))


def _key(conditions: Conditions) -> tuple[object, ...]:
    return conditions.workers, conditions.hosts, conditions.batch, conditions.bandwidth, conditions.latency_s


def _candidates(
    evidence: Evidence, study: Study, cores: int
) -> list[tuple[Mapping[str, tuple[object, ...]], Conditions, str]]:
    """Runs that this site could make: another batch, more workers on a host."""
    first = min(evidence.trainings, key=lambda one: one.conditions.workers).conditions
    last = max(evidence.trainings, key=lambda one: one.conditions.workers).conditions
    threads = evidence.family.threads
    found: list[tuple[Mapping[str, tuple[object, ...]], Conditions, str]] = []
    for one in (first, last):
        for factor in (0.5, 2.0):
            batch = max(1, round(one.samples * factor))
            axes = {"workload.batch_per_worker": (batch,), "workload.batch_global": (None,)}
            found.append(
                (
                    {**axes, **_size(one)},
                    one.change(batch=batch / one.passes),
                    f"batch {batch} on {one.workers} worker(s)",
                )
            )
    more = last.workers * 2
    if last.hosts == 1 and more * threads <= cores:
        axes = {"cluster.workers_per_host": (more,)}
        found.append((axes, last.change(workers=more), f"{more} workers"))
    return [one for one in found if set(one[0]) <= set(study.axes)]


def _size(conditions: Conditions) -> dict[str, tuple[object, ...]]:
    return {"cluster.hosts": (conditions.hosts,), "cluster.workers_per_host": (conditions.workers // conditions.hosts,)}
