"""Did a trial become slower (or faster) at some moment? One change-point of its runs in time, with its evidence. Pure.

The split of the runs, in order of time, that explains most of the variance of their logarithms; how often shuffled runs
are split as well (a permutation test) says whether it is more than chance. Holm's correction over all trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from paceline.model.equations.step import Floats
from paceline.stats import ALPHA, holm

LEAST_SIDE = 3
"""Runs on each side of a change."""
SHUFFLES = 2000
LEAST_CHANGE = 0.02
"""Relative: a change below this is real perhaps, and not worth stopping a build for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One run in time."""

    started: float
    """Unix time."""
    step_s: float
    run: str
    versions: Mapping[str, str]
    """What may have changed: the tool, the environment's state, the machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint:
    """Where the runs of one trial part."""

    trial: str
    ratio: float
    """Step after ÷ before."""
    p: float
    """Corrected for the number of trials."""
    before: int
    after: int
    """Runs on each side."""
    last_before: str
    first_after: str
    """Ids of the runs around it."""
    started: float
    """Unix time of the first run after it."""
    changed: Mapping[str, tuple[str, str]]
    """What is different between the two sides: name → (before, after)."""

    @property
    def slower(self) -> bool:
        return self.ratio > 1

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "changed": {name: list(pair) for name, pair in self.changed.items()}}


def change_points(series: Mapping[str, Sequence[Moment]], *, least: float = LEAST_CHANGE) -> list[ChangePoint]:
    """Changes that are more than chance, the largest first.

    Args:
        series: trial id → its runs, in any order.
        least: relative change that counts.
    """
    found = [one for trial, moments in series.items() if (one := _split(trial, moments)) is not None]
    corrected = holm([one[1] for one in found])
    sure = [
        _point(trial, moments, at, p) for (trial, _, moments, at), p in zip(found, corrected, strict=True) if p < ALPHA
    ]
    return sorted((one for one in sure if abs(np.log(one.ratio)) >= np.log1p(least)), key=lambda one: -one.ratio)


def _split(trial: str, moments: Sequence[Moment]) -> tuple[str, float, list[Moment], int] | None:
    ordered = sorted(moments, key=lambda one: one.started)
    if len(ordered) < 2 * LEAST_SIDE:
        return None
    logs = np.log([one.step_s for one in ordered])
    best = _explained(logs)
    generator = np.random.default_rng(0)
    shuffled = [float(_explained(generator.permutation(logs)).max()) for _ in range(SHUFFLES)]
    p = (1 + sum(one >= best.max() for one in shuffled)) / (SHUFFLES + 1)
    return trial, p, ordered, LEAST_SIDE + int(best.argmax())


def _explained(logs: Floats) -> Floats:
    """How much of the variance each split explains, from LEAST_SIDE runs on the left to as many on the right."""
    total = logs.sum()
    left = np.cumsum(logs)[LEAST_SIDE - 1 : len(logs) - LEAST_SIDE]
    counts = np.arange(LEAST_SIDE, len(logs) - LEAST_SIDE + 1, dtype=float)
    rest = len(logs) - counts
    difference = left / counts - (total - left) / rest
    found: Floats = difference**2 * counts * rest / len(logs)
    return found


def _point(trial: str, moments: Sequence[Moment], at: int, p: float) -> ChangePoint:
    before, after = moments[:at], moments[at:]
    logs = [float(np.mean(np.log([one.step_s for one in side]))) for side in (before, after)]
    last, first = before[-1], after[0]
    return ChangePoint(
        trial=trial,
        ratio=float(np.exp(logs[1] - logs[0])),
        p=p,
        before=len(before),
        after=len(after),
        last_before=last.run,
        first_after=first.run,
        started=first.started,
        changed={
            name: (last.versions[name], first.versions[name])
            for name in last.versions
            if first.versions.get(name) not in {None, last.versions[name]}
        },
    )
