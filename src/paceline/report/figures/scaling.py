"""How well it scales: throughput and efficiency against workers, measured and predicted, strong and weak apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import Comparison, Row, ScalingFamily, families
from paceline.model.forecast.predict import KNEE, Prediction, knee
from paceline.report import numbers
from paceline.report.curve import LEFT, RIGHT, TOP, Curve, CurvePoint, panel, point_of
from paceline.report.figures.figure import Figure, names_for
from paceline.report.sheet import Cell, Line, Sheet, fields, measured, number, word
from paceline.report.svg import WIDTH, Area, picture
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import MEASURED, SIMULATED, KnownBy
from paceline.units import format_count

UPPER, LOWER, BETWEEN, BOTTOM = 300, 150, 84, 56
PREDICTED = "Dashed with a band: modelled, 90 % interval."
IDEAL = "Dotted: ideal, linear speed-up."
SIZE = re.compile(r"\d+ workers?( on \d+ hosts)?")
"""The part of a row's label that says its size."""
MOST_CURVES = 6
"""Of one figure, where its families could be dealt out to several."""


def scaling_figures(comparison: Comparison, curves: Mapping[str, Sequence[Prediction]]) -> list[Figure]:
    """One figure a model, batch and kind of scaling; each family in it is a curve. Networks share a figure, as long as
    that does not crowd it.
    """
    together: dict[str, list[ScalingFamily]] = {}
    for one in families(comparison):
        together.setdefault(_title(one.rows), []).append(one)
    groups: dict[str, dict[str, Sequence[Row]]] = {}
    for title, mine in together.items():
        several = len({one.rows[-1].network for one in mine}) > 1 and len(mine) <= MOST_CURVES
        for one in mine:
            network = one.rows[-1].network
            whole = f"{title} · {network}" if network and not several else title
            groups.setdefault(whole, {})[one.key] = one.rows
    names = names_for("scaling", [title.replace(" scaling", "") for title in groups])
    return [_figure(name, title, mine, curves) for name, (title, mine) in zip(names, groups.items(), strict=True)]


def _title(rows: Sequence[Row]) -> str:
    last = rows[-1]
    batch = (
        f"batch {last.batch_global} in all" if last.scaling == "strong" else f"batch {last.batch_per_worker} per worker"
    )
    return f"{last.scaling} scaling · {last.workload} · {batch}"


def _name(rows: Sequence[Row], title: str) -> str:
    """What sets a family apart from others in a figure: its label without its size, and without what the title says."""
    said = title.split(" · ")
    parts = [part for part in rows[-1].label.split(" · ") if not SIZE.fullmatch(part) and part not in said]
    return " · ".join(parts) or f"{rows[0].framework} {rows[0].strategy}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """One family of a figure."""

    name: str
    key: str
    rows: Sequence[Row]
    predictions: Sequence[Prediction]

    @property
    def sizes(self) -> list[int]:
        return sorted({*(row.workers for row in self.rows), *(one.conditions.workers for one in self.predictions)})


def _figure(
    name: str, title: str, groups: Mapping[str, Sequence[Row]], curves: Mapping[str, Sequence[Prediction]]
) -> Figure:
    height = TOP + UPPER + BETWEEN + LOWER + BOTTOM
    upper = Area(left=LEFT, top=TOP, right=WIDTH - RIGHT, bottom=TOP + UPPER)
    lower = Area(left=LEFT, top=upper.bottom + BETWEEN, right=WIDTH - RIGHT, bottom=height - BOTTOM)
    drawn = [
        Drawn(name=_name(rows, title), key=key, rows=rows, predictions=tuple(curves.get(key, ())))
        for key, rows in groups.items()
    ]
    fast, kept = [_throughput(one) for one in drawn], [_efficiency(one) for one in drawn]
    top = max([1.0, *(one.high or one.value for curve in kept for one in curve.measured)])
    parts = panel(fast, upper, title="samples per second", log=True, form=format_count)
    parts += panel(kept, lower, title="efficiency", log=False, form=_percent, named=False, low=0.0, high=min(top, 1.3))
    return Figure(
        name=name,
        title=title[0].upper() + title[1:],
        caption=_caption(drawn),
        svg=picture(f"Throughput and efficiency against workers with the ideal line: {title}", height, parts),
        sheet=_sheet(drawn),
    )


def _throughput(family: Drawn) -> Curve:
    base = family.rows[0]
    per_worker = numbers.known(base.throughput).value / base.workers
    return Curve(
        name=family.name,
        measured=tuple(_point(row, numbers.known(row.throughput)) for row in family.rows),
        predicted=tuple(point_of(one) for one in family.predictions),
        knee=knee(family.predictions) if family.predictions else None,
        ideal=tuple(CurvePoint(workers=count, value=per_worker * count) for count in family.sizes),
    )


def _efficiency(family: Drawn) -> Curve:
    predicted = tuple(
        CurvePoint(
            workers=one.conditions.workers, value=one.efficiency.value, low=one.efficiency.low, high=one.efficiency.high
        )
        for one in family.predictions
    )
    return Curve(
        name=family.name,
        measured=tuple(_point(row, numbers.known(row.efficiency)) for row in family.rows),
        predicted=predicted,
        ideal=tuple(CurvePoint(workers=count, value=1.0) for count in family.sizes),
    )


def _point(row: Row, quantity: Estimate) -> CurvePoint:
    return CurvePoint(
        workers=row.workers, value=quantity.value, low=quantity.low, high=quantity.high, key=row.key, by=_source(row)
    )


def _source(row: Row) -> KnownBy:
    return SIMULATED if row.simulated else MEASURED


def _percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def _caption(drawn: Sequence[Drawn]) -> str:
    predicted = [one for one in drawn if one.predictions]
    marks = " and ".join(sorted({_source(row) for one in drawn for row in one.rows}))
    sentences = [
        f"Solid with marks: {marks}, means over runs with 95 % intervals.",
        *([PREDICTED] if predicted else []),
        IDEAL,
    ]
    for one in predicted:
        last = one.predictions[-1]
        sentences.append(f"{one.name}: modelled efficiency {_where(knee(one.predictions), last.conditions.workers)}.")
    far = {
        f"{one.conditions.workers} workers are {one.extrapolated}."
        for family in predicted
        for one in family.predictions[-1:]
        if one.extrapolated
    }
    return " ".join([*sentences, *sorted(far)])


def _where(found: int | None, last: int) -> str:
    """Of the knee."""
    if found == 1:
        return f"is below {_percent(KNEE)} from two workers on"
    return f"stays above {_percent(KNEE)} {f'up to {found}' if found else f'throughout, up to {last}'} workers"


def _sheet(drawn: Sequence[Drawn]) -> Sheet:
    lines = []
    for one in drawn:
        lines += [_measured_line(one.name, row) for row in one.rows]
        lines += [_predicted_line(one.name, one.key, said) for said in one.predictions]
    return Sheet(
        caption="Throughput, speed-up and efficiency; of runs with 95 %, modelled with 90 % intervals",
        fields=fields(
            family="family",
            by="by",
            workers="workers",
            throughput="samples/s",
            speedup="speed-up",
            efficiency="efficiency",
        ),
        lines=tuple(lines),
    )


def _measured_line(name: str, row: Row) -> Line:
    return Line(
        key=row.key,
        cells=(
            word(name),
            word(_source(row)),
            number(row.workers, str(row.workers)),
            measured(row.throughput, numbers.plain(row.throughput)),
            measured(row.speedup, numbers.plain(row.speedup)),
            measured(row.efficiency, numbers.percent(row.efficiency)),
        ),
    )


def _predicted_line(name: str, base: str, one: Prediction) -> Line:
    workers = one.conditions.workers
    return Line(
        key=f"{base} predicted {workers}",
        cells=(
            word(name),
            word(one.by),
            number(workers, str(workers)),
            _predicted(one.throughput, 1, ""),
            word("-"),
            _predicted(one.efficiency, 100, " %"),
        ),
    )


def _predicted(said: Estimate, factor: float, unit: str) -> Cell:
    value, low, high = (format_count(number * factor) for number in (said.value, *said.interval))
    return Cell(text=f"{value}{unit} ({low}–{high})", value=said.value, low=said.low, high=said.high)
