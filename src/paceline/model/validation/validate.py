"""How wrong the model is: fit on some points, predict the rest, beside what others would have said. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.step import Floats
from paceline.model.foreign.tables import MeasuredPoint
from paceline.model.validation.baselines import BASELINES, Predictor, times
from paceline.model.validation.figures import Figures, figures, mean_over_groups
from paceline.model.validation.structural import Structural

LEAST_ROWS = 10
"""On each side: a smaller group is shown, and does not count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupResult:
    """One group: what each model said of its points."""

    group: str
    n_fit: int
    points: tuple[MeasuredPoint, ...]
    """Those to predict."""
    predicted: dict[str, Floats]
    """Model → seconds."""
    intervals: tuple[Floats, Floats] | None
    """Of our model."""
    noise: float | None
    """Spread of rows that repeat each other, as a fraction; None where none do."""
    least_rows: int = LEAST_ROWS
    """On each side, for the group to count."""

    @property
    def counts(self) -> bool:
        return self.n_fit >= self.least_rows and len(self.points) >= self.least_rows

    def figures(self, model: str) -> Figures:
        own = self.intervals if model == Structural.name else None
        return figures(self.predicted[model], times(self.points), own)


@dataclass(frozen=True, kw_only=True, slots=True)
class Validation:
    """All groups of a table."""

    groups: tuple[GroupResult, ...]
    without_rows: tuple[str, ...]
    """Groups in which nothing is to be predicted, or nothing to be fitted on."""

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
                        {"group": one.group, "counts": one.counts, **one.figures(model).to_json()}
                        for one in self.groups
                    ],
                }
                for model in self.models
            ],
            "groups": [
                {
                    "group": one.group,
                    "counts": one.counts,
                    "n_fit": one.n_fit,
                    "n_predicted": len(one.points),
                    "noise": one.noise,
                    "points": _points(one),
                }
                for one in self.groups
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
    """Each group by itself: fitted on the points that match, judged on the rest."""
    names = list(dict.fromkeys(point.group for point in points))
    results, without = [], []
    for name in names:
        mine = [point for point in points if point.group == name]
        known = [point for point in mine if fits(point)]
        asked = [point for point in mine if not fits(point)]
        if not asked or len(known) < 3:
            why = "nothing to predict" if not asked else f"{len(known)} row(s) to fit on"
            without.append(f"{name}: {why}")
            continue
        say(f"{name}: {len(known)} rows fitted, {len(asked)} predicted")
        results.append(_result(name, known, asked, mine))
    return Validation(groups=tuple(results), without_rows=tuple(without))


def _result(
    name: str, known: Sequence[MeasuredPoint], asked: Sequence[MeasuredPoint], mine: Sequence[MeasuredPoint]
) -> GroupResult:
    predicted: dict[str, Floats] = {}
    intervals = None
    makers: list[type[Predictor]] = [Structural, *BASELINES]
    for make in makers:
        model = make()
        model.fit(known)
        predicted[model.name] = np.maximum(model.predict(asked), 1e-12)
        intervals = intervals or model.interval(asked)
    return GroupResult(
        group=name,
        n_fit=len(known),
        points=tuple(asked),
        predicted=predicted,
        intervals=intervals,
        noise=noise_floor(mine),
    )


def noise_floor(points: Sequence[MeasuredPoint]) -> float | None:
    """Mean absolute deviation, relative, of rows of the same configuration from their mean."""
    same: dict[tuple[object, ...], list[float]] = {}
    for point in points:
        key = (point.workers, point.hosts, point.batch, point.row.get("placement"))
        same.setdefault(key, []).append(point.step_s)
    deviations = [abs(value / np.mean(values) - 1) for values in same.values() if len(values) > 1 for value in values]
    return float(np.mean(deviations)) if deviations else None
