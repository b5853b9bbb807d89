"""Scaling curves as a picture: something against workers, measured and predicted, with bands and the ideal line."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.model.forecast.predict import Prediction
from paceline.report.palette import INK, SOFT
from paceline.report.svg import (
    DOTTED,
    WIDTH,
    Area,
    Scale,
    across,
    apart,
    band,
    dash,
    dot,
    line,
    path,
    picture,
    series,
    text,
    told,
    upward,
)
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import MEASURED
from paceline.units import format_count

HEIGHT = 460
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 56
NAME = 26
"""The most letters per line of a curve's name, which is drawn at its end."""
NAME_LINE = 15
MOST_DOUBT = 2.0
"""An interval is drawn up to this factor above and below the value: more would squeeze all curves."""

Form = Callable[[float], str]
"""Formats a value as text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """An estimate at a number of workers."""

    workers: int
    estimate: Estimate
    key: str = ""
    """The key of the row that the point belongs to."""
    by: str = MEASURED
    """The source of the number, for a point that belongs to a row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One family."""

    name: str
    measured: tuple[CurvePoint, ...] = ()
    predicted: tuple[CurvePoint, ...] = ()
    ideal: Mapping[int, float]
    """Workers → what linear speed-up would give."""
    knee: int | None = None
    """The most workers whose efficiency is still high; None: it never falls, or is not known."""


def scaling_svg(curves: Mapping[str, Sequence[Prediction]]) -> str:
    """A picture of predicted throughput; one curve a family."""
    drawn = [_predicted(name, predictions) for name, predictions in curves.items()]
    area = Area(left=LEFT, top=TOP, right=WIDTH - RIGHT, bottom=HEIGHT - BOTTOM)
    parts = panel(drawn, area, title="samples per second", log=True, form=format_count)
    return picture("Predicted throughput by workers, 90 % intervals; dotted: ideal", HEIGHT, parts)


def _predicted(name: str, predictions: Sequence[Prediction]) -> Curve:
    first = predictions[0]
    per_worker = first.throughput.value / first.conditions.workers
    counts = [prediction.conditions.workers for prediction in predictions]
    return Curve(
        name=name,
        predicted=tuple(point_of(prediction) for prediction in predictions),
        ideal={count: per_worker * count for count in counts},
    )


def point_of(prediction: Prediction) -> CurvePoint:
    """Predicted throughput."""
    return CurvePoint(workers=prediction.conditions.workers, estimate=prediction.throughput)


def panel(
    curves: Sequence[Curve],
    area: Area,
    *,
    title: str,
    log: bool,
    form: Form,
    named: bool = True,
    low: float | None = None,
    high: float | None = None,
) -> list[str]:
    """Axes and all curves in an area.

    Args:
        curves: at least one, with at least one point.
        area: without the room that axes and names need around it.
        title: what is drawn upward.
        log: whether that goes by doublings; linear axes begin at `low`.
        form: how values are written.
        named: whether each curve has its name at its end.
        low: of the vertical axis, whatever the values.
        high: the same.
    """
    points = [point for curve in curves for point in (*curve.measured, *curve.predicted)]
    counts = sorted({*(point.workers for point in points), *(count for curve in curves for count in curve.ideal)})
    values = [ideal for curve in curves for ideal in curve.ideal.values()]
    for estimate in (point.estimate for point in points):
        least, most = _ends(estimate)
        values += [
            estimate.value,
            max(least, estimate.value / MOST_DOUBT),
            min(most, estimate.value * MOST_DOUBT),
        ]
    right = Scale(counts[0], max(counts[-1], counts[0] + 1), area.left + 12, area.right - 12, log=True)
    bottom, top = (min(values) if low is None else low), (max(values) if high is None else high)
    up = Scale(bottom, max(top, bottom * 1.01), area.bottom, area.top, log=log)
    parts = across(area, right, {count: str(count) for count in _sparse(counts, right)}, "workers")
    parts += upward(area, up, {value: form(value) for value in up.ticks()}, title)
    for index, curve in enumerate(curves):
        parts += _ideal(curve, right, up)
        parts += _curve(index, curve, right, up, form)
    return parts + _knees(curves, right, area) + (_names(curves, right, up, area) if named else [])


def _sparse(counts: Sequence[int], right: Scale) -> list[int]:
    """As many counts as have room for their label."""
    labelled: list[int] = []
    for count in counts:
        if not labelled or right(count) - right(labelled[-1]) > 28:
            labelled.append(count)
    return labelled


def _ideal(curve: Curve, right: Scale, up: Scale) -> list[str]:
    places = [(right(count), up.inside(value)) for count, value in curve.ideal.items()]
    return [path(places, stroke=SOFT, kind="ideal", stroke_dasharray=DOTTED, stroke_width="1.5")] if places else []


def _curve(index: int, curve: Curve, right: Scale, up: Scale, form: Form) -> list[str]:
    paint = series(index)
    parts = []
    if len(curve.predicted) > 1:
        lows, highs = (
            [(right(point.workers), up.inside(_ends(point.estimate)[side])) for point in curve.predicted]
            for side in (0, 1)
        )
        middle = [(right(point.workers), up.inside(point.estimate.value)) for point in curve.predicted]
        parts.append(band(lows, highs, fill=paint))
        parts.append(path(middle, stroke=paint, kind="predicted", stroke_width=2, stroke_dasharray=dash(index)))
    if len(curve.measured) > 1:
        middle = [(right(point.workers), up.inside(point.estimate.value)) for point in curve.measured]
        parts.append(path(middle, stroke=paint, kind="measured", stroke_width=2))
    for point in curve.measured:
        x, estimate = right(point.workers), point.estimate
        if estimate.ends is not None:
            low, high = map(up.inside, estimate.ends)
            parts.append(line(x, low, x, high, stroke=paint, stroke_width=2))
        words = f"{curve.name}, {point.workers}: {point.by} {_with_ends(estimate, form)}"
        parts.append(
            dot(
                index,
                x,
                up.inside(estimate.value),
                told(words),
                kind="mark",
                data_row=point.key,
                data_value=repr(estimate.value),
            )
        )
    if not curve.measured:
        for point in curve.predicted:
            words = told(f"{curve.name}, {point.workers}: {_with_ends(point.estimate, form)}")
            y = up.inside(point.estimate.value)
            parts.append(dot(index, right(point.workers), y, words, size=3.5, kind="mark"))
    return parts


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The ends of what is drawn: a value without interval is a point."""
    return estimate.ends or (estimate.value, estimate.value)


def _with_ends(estimate: Estimate, form: Form) -> str:
    ends = "" if estimate.ends is None else f" ({'–'.join(map(form, estimate.ends))})"
    return f"{form(estimate.value)}{ends}"


def _knees(curves: Sequence[Curve], right: Scale, area: Area) -> list[str]:
    """A line where a curve has its knee, and how many workers that are. One that falls from its first point on has
    none to draw.
    """
    return [
        part
        for count in sorted({curve.knee for curve in curves if curve.knee and curve.knee > 1})
        for part in (
            line(
                right(count), area.top + 18, right(count), area.bottom, stroke=SOFT, kind="knee", stroke_dasharray="5 3"
            ),
            # Above the curves, which rise from the left.
            text(right(count), area.top + 12, f"knee: {count}", fill=SOFT, anchor="middle"),
        )
    ]


def _names(curves: Sequence[Curve], right: Scale, up: Scale, area: Area) -> list[str]:
    """Draw each curve's name beside its end, with its marker, so that no colour is needed."""
    ends = [max((*curve.measured, *curve.predicted), key=lambda point: point.workers) for curve in curves]
    lines = [textwrap.wrap(curve.name, NAME) or [""] for curve in curves]
    gap = NAME_LINE * max(map(len, lines)) + 3
    beside = apart([up.inside(end.estimate.value) for end in ends], gap)
    parts = []
    for index, (end, words, y) in enumerate(zip(ends, lines, beside, strict=True)):
        x = right(end.workers) + 8
        parts.append(line(x, up.inside(end.estimate.value), area.right + 8, y, stroke=SOFT, stroke_opacity="0.5"))
        parts.append(dot(index, area.right + 16, y, size=3.5))
        parts += [
            text(area.right + 26, y + 4 + NAME_LINE * row, name_line, fill=INK if row == 0 else SOFT)
            for row, name_line in enumerate(words)
        ]
    return parts
