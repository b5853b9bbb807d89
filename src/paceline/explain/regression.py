"""Detects whether a trial became slower or faster at some point in time. Pure.

The change point is the split of the runs, ordered by time, that explains most of the variance of their logarithms. A
permutation test says whether it is more than chance. Holm's correction covers all trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.stats import ALPHA, holm

LEAST_SIDE = 3
"""The fewest runs on each side of a change."""
SHUFFLES = 2000
LEAST_CHANGE = 0.02
"""The smallest relative change that is reported; a smaller one may be real, but is not worth failing a build."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One run of a trial at a point in time."""

    started: float
    """The Unix time at which the run started."""
    step_s: float
    run: str
    """The id of the run."""
    versions: Mapping[str, str]
    """The versions that may explain a change: of the tool, the environment and the machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint:
    """A point in time at which the step of one trial changed."""

    trial: str
    ratio: float
    """The step after the change ÷ the step before."""
    p: float
    """The p-value, corrected for the number of trials."""
    before: int
    """The number of runs before the change."""
    after: int
    """The number of runs after the change."""
    last_before: str
    """The id of the last run before the change."""
    first_after: str
    """The id of the first run after the change."""
    started: float
    """The Unix time of the first run after the change."""
    changed: Mapping[str, tuple[str, str]]
    """The versions that differ between the two sides: name → (before, after)."""

    @property
    def slower(self) -> bool:
        return self.ratio > 1

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "changed": {name: list(pair) for name, pair in self.changed.items()}}


def change_points(series: Mapping[str, Sequence[Moment]], *, least: float = LEAST_CHANGE) -> list[ChangePoint]:
    """Returns the changes that are more than chance, the largest slowdown first.

    Args:
        series: trial id → its runs, in any order.
        least: the smallest relative change that counts.
    """
    splits = [split for trial, moments in series.items() if (split := _split(trial, moments)) is not None]
    corrected = holm([p for _, p, _, _ in splits])
    points = [
        _point(trial, moments, at, p) for (trial, _, moments, at), p in zip(splits, corrected, strict=True) if p < ALPHA
    ]
    large = [point for point in points if abs(np.log(point.ratio)) >= np.log1p(least)]
    return sorted(large, key=lambda point: -point.ratio)


def _split(trial: str, moments: Sequence[Moment]) -> tuple[str, float, list[Moment], int] | None:
    ordered = sorted(moments, key=lambda moment: moment.started)
    if len(ordered) < 2 * LEAST_SIDE:
        return None
    logs = np.log([moment.step_s for moment in ordered])
    best = _explained(logs)
    generator = np.random.default_rng(0)
    shuffled = [float(_explained(generator.permutation(logs)).max()) for _ in range(SHUFFLES)]
    p = (1 + sum(by_chance >= best.max() for by_chance in shuffled)) / (SHUFFLES + 1)
    return trial, p, ordered, LEAST_SIDE + int(best.argmax())


def _explained(logs: Floats) -> Floats:
    """Returns the variance that each split explains, from LEAST_SIDE runs on the left to as many on the right."""
    total = logs.sum()
    left = np.cumsum(logs)[LEAST_SIDE - 1 : len(logs) - LEAST_SIDE]
    counts = np.arange(LEAST_SIDE, len(logs) - LEAST_SIDE + 1, dtype=float)
    rest = len(logs) - counts
    difference = left / counts - (total - left) / rest
    explained: Floats = difference**2 * counts * rest / len(logs)
    return explained


def _point(trial: str, moments: Sequence[Moment], at: int, p: float) -> ChangePoint:
    before, after = moments[:at], moments[at:]
    logs = [float(np.mean(np.log([moment.step_s for moment in side]))) for side in (before, after)]
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
