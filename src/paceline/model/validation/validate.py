"""Validation: fit on some points, predict the rest, and compare with published baselines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.foreign.tables import MeasuredPoint
from paceline.model.validation.baselines import BASELINES, Predictor, times
from paceline.model.validation.figures import Figures, figures, mean_over_groups
from paceline.model.validation.structural import Structural

LEAST_ROWS = 10
"""Smallest number of rows on each side; a smaller group is shown but does not count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupResult:
    """The predictions of each model for one group of points."""

    group: str
    n_fit: int
    points: tuple[MeasuredPoint, ...]
    """The points to predict."""
    predicted: dict[str, Floats]
    """Maps a model to its predicted seconds."""
    intervals: tuple[Floats, Floats] | None
    """Intervals of our model."""
    noise: float | None
    """Relative spread of repeated rows; None without repeated rows."""
    least_rows: int = LEAST_ROWS
    """Smallest number of rows on each side for the group to count."""

    @property
    def counts(self) -> bool:
        return self.n_fit >= self.least_rows and len(self.points) >= self.least_rows

    def figures(self, model: str) -> Figures:
        own = self.intervals if model == Structural.name else None
        return figures(self.predicted[model], times(self.points), own)


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """The results of all groups of a table."""

    groups: tuple[GroupResult, ...]
    without_rows: tuple[str, ...]
    """Groups without points to predict or with too few to fit, with the reason."""

    @property
    def least_rows(self) -> int:
        return max((group.least_rows for group in self.groups), default=LEAST_ROWS)

    @property
    def models(self) -> list[str]:
        return list(self.groups[0].predicted) if self.groups else []

    def counted(self) -> list[GroupResult]:
        return [group for group in self.groups if group.counts]

    def overall(self, model: str) -> dict[str, float | None]:
        """Mean of each figure over the groups that count."""
        return mean_over_groups([group.figures(model) for group in self.counted()])

    def to_json(self) -> dict[str, object]:
        return {
            "models": [
                {
                    "name": model,
                    **self.overall(model),
                    "groups": [
                        {"group": group.group, "counts": group.counts, **group.figures(model).to_json()}
                        for group in self.groups
                    ],
                }
                for model in self.models
            ],
            "groups": [
                {
                    "group": group.group,
                    "counts": group.counts,
                    "n_fit": group.n_fit,
                    "n_predicted": len(group.points),
                    "noise": group.noise,
                    "points": _points(group),
                }
                for group in self.groups
            ],
            "without_rows": list(self.without_rows),
            "least_rows": self.least_rows,
        }


def _points(group: GroupResult) -> list[dict[str, object]]:
    rows = []
    for index, point in enumerate(group.points):
        row: dict[str, object] = {
            "workers": point.workers,
            "hosts": point.hosts,
            "batch": point.batch,
            "network": point.row.get("network"),
            "measured_s": point.step_s,
            "predicted_s": {model: float(values[index]) for model, values in group.predicted.items()},
        }
        if group.intervals is not None:
            row["low_s"], row["high_s"] = float(group.intervals[0][index]), float(group.intervals[1][index])
        rows.append(row)
    return rows


def validate_table(
    points: Sequence[MeasuredPoint], fits: Callable[[MeasuredPoint], bool], say: Callable[[str], None] = lambda _: None
) -> Validation:
    """Fit each group on the points that match, and judge it on the rest."""
    names = list(dict.fromkeys(point.group for point in points))
    results, without = [], []
    for name in names:
        members = [point for point in points if point.group == name]
        fitted = [point for point in members if fits(point)]
        held_out = [point for point in members if not fits(point)]
        if not held_out or len(fitted) < 3:
            why = "nothing to predict" if not held_out else f"only {len(fitted)} row(s) to fit"
            without.append(f"{name}: {why}")
            continue
        say(f"{name}: {len(fitted)} rows fitted, {len(held_out)} predicted")
        results.append(_result(name, fitted, held_out, members))
    return Validation(groups=tuple(results), without_rows=tuple(without))


def _result(
    name: str, fitted: Sequence[MeasuredPoint], held_out: Sequence[MeasuredPoint], members: Sequence[MeasuredPoint]
) -> GroupResult:
    predicted: dict[str, Floats] = {}
    intervals = None
    makers: list[type[Predictor]] = [Structural, *BASELINES]
    for make in makers:
        model = make()
        model.fit(fitted)
        predicted[model.name] = np.maximum(model.predict(held_out), 1e-12)
        intervals = intervals or model.interval(held_out)
    return GroupResult(
        group=name,
        n_fit=len(fitted),
        points=tuple(held_out),
        predicted=predicted,
        intervals=intervals,
        noise=noise_floor(members),
    )


def noise_floor(points: Sequence[MeasuredPoint]) -> float | None:
    """Mean relative deviation of rows of the same configuration from their mean; None without repeated rows."""
    same: dict[tuple[object, ...], list[float]] = {}
    for point in points:
        key = (point.workers, point.hosts, point.batch, point.row.get("placement"))
        same.setdefault(key, []).append(point.step_s)
    deviations = [abs(value / np.mean(values) - 1) for values in same.values() if len(values) > 1 for value in values]
    return float(np.mean(deviations)) if deviations else None
