"""How well it scales: throughput and efficiency against workers, measured and predicted, strong and weak apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from paceline.compare import Comparison, Quantity, Row, families
from paceline.model.predict import KNEE, Predicted, Prediction, knee
from paceline.report import numbers
from paceline.report.curve import LEFT, RIGHT, TOP, Curve, Point, panel, point_of
from paceline.report.figures.figure import Figure, names_for
from paceline.report.sheet import Cell, Line, Sheet, fields, measured, number, word
from paceline.report.svg import WIDTH, Area, picture
from paceline.units import format_count

UPPER, LOWER, BETWEEN, BOTTOM = 300, 150, 84, 56
MEASURED = "Solid with marks: measured, means over runs with 95 % intervals."
PREDICTED = "Dashed with a band: modelled, 90 % interval."
IDEAL = "Dotted: ideal, as many times the workers."
SIZE = re.compile(r"\d+ workers?( on \d+ hosts)?")
"""The part of a row's label that says its size."""


def scaling_figures(comparison: Comparison, curves: Mapping[str, Sequence[Prediction]]) -> list[Figure]:
    """One figure a model, kind of scaling and network; each family in it is a curve."""
    groups: dict[str, dict[str, Sequence[Row]]] = {}
    for one in families(comparison):
        groups.setdefault(_title(one.rows), {})[one.key] = one.rows
    names = names_for("scaling", [title.replace(" scaling", "") for title in groups])
    return [_figure(name, title, mine, curves) for name, (title, mine) in zip(names, groups.items(), strict=True)]


def family_name(rows: Sequence[Row]) -> str:
    """What sets a family apart from others: the label of its rows without their size."""
    parts = [part for part in rows[0].label.split(" · ") if not SIZE.fullmatch(part)]
    return " · ".join(parts) or f"{rows[0].framework} {rows[0].strategy}"


def _title(rows: Sequence[Row]) -> str:
    last = rows[-1]
    batch = (
        f"batch {last.batch_global} in all" if last.scaling == "strong" else f"batch {last.batch_per_worker} a worker"
    )
    network = f" · {last.network}" if last.network else ""
    return f"{last.scaling} scaling · {last.workload} · {batch}{network}"


def _figure(
    name: str, title: str, groups: Mapping[str, Sequence[Row]], curves: Mapping[str, Sequence[Prediction]]
) -> Figure:
    height = TOP + UPPER + BETWEEN + LOWER + BOTTOM
    upper = Area(left=LEFT, top=TOP, right=WIDTH - RIGHT, bottom=TOP + UPPER)
    lower = Area(left=LEFT, top=upper.bottom + BETWEEN, right=WIDTH - RIGHT, bottom=height - BOTTOM)
    predictions = {base: tuple(curves.get(base, ())) for base in groups}
    fast = [_throughput(rows, predictions[base]) for base, rows in groups.items()]
    kept = [_efficiency(rows, predictions[base]) for base, rows in groups.items()]
    top = max([1.0, *(one.high or one.value for curve in kept for one in curve.measured)])
    parts = panel(fast, upper, title="samples a second", log=True, form=format_count)
    parts += panel(kept, lower, title="efficiency", log=False, form=_percent, named=False, low=0.0, high=min(top, 1.3))
    return Figure(
        name=name, title=title[0].upper() + title[1:], caption=_caption(groups, predictions),
        svg=picture(f"Throughput and efficiency against workers with the ideal line: {title}", height, parts),
        sheet=_sheet(groups, predictions),
    )  # fmt: skip


def _throughput(rows: Sequence[Row], predictions: Sequence[Prediction]) -> Curve:
    base = rows[0]
    per_worker = numbers.known(base.throughput).value / base.workers
    predicted = tuple(point_of(one) for one in predictions)
    counts = sorted({*(row.workers for row in rows), *(one.workers for one in predicted)})
    return Curve(
        name=family_name(rows), measured=tuple(_point(row, numbers.known(row.throughput)) for row in rows),
        predicted=predicted, knee=knee(predictions) if predictions else None,
        ideal=tuple(Point(workers=count, value=per_worker * count) for count in counts),
    )  # fmt: skip


def _efficiency(rows: Sequence[Row], predictions: Sequence[Prediction]) -> Curve:
    predicted = tuple(
        Point(
            workers=one.conditions.workers, value=one.efficiency.value, low=one.efficiency.low, high=one.efficiency.high
        )
        for one in predictions
    )
    counts = sorted({*(row.workers for row in rows), *(one.workers for one in predicted)})
    return Curve(
        name=family_name(rows), measured=tuple(_point(row, numbers.known(row.efficiency)) for row in rows),
        predicted=predicted, ideal=tuple(Point(workers=count, value=1.0) for count in counts),
    )  # fmt: skip


def _point(row: Row, quantity: Quantity) -> Point:
    return Point(workers=row.workers, value=quantity.value, low=quantity.low, high=quantity.high, key=row.key)


def _percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def _caption(groups: Mapping[str, Sequence[Row]], predictions: Mapping[str, Sequence[Prediction]]) -> str:
    sentences = [MEASURED, *([PREDICTED] if any(predictions.values()) else []), IDEAL]
    for base, rows in groups.items():
        if predictions[base]:
            found, last = knee(predictions[base]), predictions[base][-1].conditions.workers
            where = f"up to {found}" if found else f"throughout, up to {last}"
            sentences.append(f"{family_name(rows)}: modelled efficiency stays above {_percent(KNEE)} {where} workers.")
            if far := predictions[base][-1].extrapolated:
                sentences.append(f"{last} workers are {far}.")
    return " ".join(sentences)


def _sheet(groups: Mapping[str, Sequence[Row]], predictions: Mapping[str, Sequence[Prediction]]) -> Sheet:
    lines = []
    for base, rows in groups.items():
        lines += [_measured_line(family_name(rows), row) for row in rows]
        lines += [_predicted_line(family_name(rows), base, one) for one in predictions[base]]
    return Sheet(
        caption="Throughput, speed-up and efficiency; measured with 95 %, modelled with 90 % intervals",
        fields=fields(
            family="family", by="by", workers="workers", throughput="samples/s", speedup="speed-up",
            efficiency="efficiency",
        ),
        lines=tuple(lines),
    )  # fmt: skip


def _measured_line(name: str, row: Row) -> Line:
    return Line(
        key=row.key,
        cells=(
            word(name), word("simulated" if row.simulated else "measured"), number(row.workers, str(row.workers)),
            measured(row.throughput, numbers.plain(row.throughput)), measured(row.speedup, numbers.plain(row.speedup)),
            measured(row.efficiency, numbers.percent(row.efficiency)),
        ),
    )  # fmt: skip


def _predicted_line(name: str, base: str, one: Prediction) -> Line:
    workers = one.conditions.workers
    return Line(
        key=f"{base} predicted {workers}",
        cells=(
            word(name), word(one.by), number(workers, str(workers)), _predicted(one.throughput, 1, ""), word("-"),
            _predicted(one.efficiency, 100, " %"),
        ),
    )  # fmt: skip


def _predicted(said: Predicted, factor: float, unit: str) -> Cell:
    value, low, high = (format_count(number * factor) for number in (said.value, said.low, said.high))
    return Cell(text=f"{value}{unit} ({low}–{high})", value=said.value, low=said.low, high=said.high)
