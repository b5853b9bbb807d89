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
from paceline.report.sheet import LEVEL, Cell, Line, Sheet, fields, level_cell, measured, number, word
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
"""The most curves of one figure whose families could be split over several figures."""


def scaling_figures(comparison: Comparison, curves: Mapping[str, Sequence[Prediction]]) -> list[Figure]:
    """Draw one figure per model, batch and kind of scaling, with one curve per family.

    Networks share a figure as long as that does not crowd it.
    """
    together: dict[str, list[ScalingFamily]] = {}
    for family in families(comparison):
        together.setdefault(_title(family.rows), []).append(family)
    groups: dict[str, dict[str, Sequence[Row]]] = {}
    for title, members in together.items():
        several = len({family.rows[-1].network for family in members}) > 1 and len(members) <= MOST_CURVES
        for family in members:
            network = family.rows[-1].network
            whole = f"{title} · {network}" if network and not several else title
            groups.setdefault(whole, {})[family.key] = family.rows
    names = names_for("scaling", [title.replace(" scaling", "") for title in groups])
    return [_figure(name, title, rows, curves) for name, (title, rows) in zip(names, groups.items(), strict=True)]


def _title(rows: Sequence[Row]) -> str:
    last = rows[-1]
    batch = (
        f"batch {last.batch_global} in all" if last.scaling == "strong" else f"batch {last.batch_per_worker} per worker"
    )
    return f"{last.scaling} scaling · {last.workload} · {batch}"


def _name(rows: Sequence[Row], title: str) -> str:
    """What sets a family apart from others in a figure: its label without its size, and without what the title says."""
    in_title = title.split(" · ")
    parts = [part for part in rows[-1].label.split(" · ") if not SIZE.fullmatch(part) and part not in in_title]
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
        return sorted(
            {*(row.workers for row in self.rows), *(prediction.conditions.workers for prediction in self.predictions)}
        )


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
    throughputs, efficiencies = [_throughput(family) for family in drawn], [_efficiency(family) for family in drawn]
    shown = [point.estimate for curve in efficiencies for point in curve.measured]
    top = max([1.0, *(estimate.high or estimate.value for estimate in shown)])
    parts = panel(throughputs, upper, title="samples per second", log=True, form=format_count)
    parts += panel(
        efficiencies, lower, title="efficiency", log=False, form=_percent, named=False, low=0.0, high=min(top, 1.3)
    )
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
        predicted=tuple(point_of(prediction) for prediction in family.predictions),
        knee=knee(family.predictions) if family.predictions else None,
        ideal={count: per_worker * count for count in family.sizes},
    )


def _efficiency(family: Drawn) -> Curve:
    return Curve(
        name=family.name,
        measured=tuple(_point(row, numbers.known(row.efficiency)) for row in family.rows),
        predicted=tuple(
            CurvePoint(workers=prediction.conditions.workers, estimate=prediction.efficiency)
            for prediction in family.predictions
        ),
        ideal=dict.fromkeys(family.sizes, 1.0),
    )


def _point(row: Row, quantity: Estimate) -> CurvePoint:
    return CurvePoint(workers=row.workers, estimate=quantity, key=row.key, by=_source(row))


def _source(row: Row) -> KnownBy:
    return SIMULATED if row.simulated else MEASURED


def _percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def _caption(drawn: Sequence[Drawn]) -> str:
    predicted = [family for family in drawn if family.predictions]
    marks = " and ".join(sorted({_source(row) for family in drawn for row in family.rows}))
    sentences = [
        f"Solid with marks: {marks}, means over runs with 95 % intervals.",
        *([PREDICTED] if predicted else []),
        IDEAL,
    ]
    for family in predicted:
        last = family.predictions[-1]
        sentences.append(
            f"{family.name}: modelled efficiency {_where(knee(family.predictions), last.conditions.workers)}."
        )
    far = {
        f"{last.conditions.workers} workers are {last.extrapolated}."
        for family in predicted
        for last in family.predictions[-1:]
        if last.extrapolated
    }
    return " ".join([*sentences, *sorted(far)])


def _where(workers: int | None, last: int) -> str:
    """Describe where the knee is."""
    if workers == 1:
        return f"is below {_percent(KNEE)} from two workers on"
    return f"stays above {_percent(KNEE)} {f'up to {workers}' if workers else f'throughout, up to {last}'} workers"


def _sheet(drawn: Sequence[Drawn]) -> Sheet:
    lines = []
    for family in drawn:
        lines += [_measured_line(family.name, row) for row in family.rows]
        lines += [_predicted_line(family.name, family.key, prediction) for prediction in family.predictions]
    return Sheet(
        caption="Throughput, speed-up and efficiency; in brackets: intervals of the level that their row names",
        fields=fields(
            family="family",
            by="by",
            level=LEVEL,
            workers="workers",
            throughput="samples/s",
            speedup="speed-up",
            efficiency="efficiency",
        ),
        lines=tuple(lines),
    )


def _measured_line(name: str, row: Row) -> Line:
    quantities = (
        measured(row.throughput, numbers.plain(row.throughput)),
        measured(row.speedup, numbers.plain(row.speedup)),
        measured(row.efficiency, numbers.percent(row.efficiency)),
    )
    about = (word(name), word(_source(row)), level_cell(*quantities), number(row.workers, str(row.workers)))
    return Line(key=row.key, cells=(*about, *quantities))


def _predicted_line(name: str, base: str, prediction: Prediction) -> Line:
    workers = prediction.conditions.workers
    quantities = _predicted(prediction.throughput, 1, ""), word("-"), _predicted(prediction.efficiency, 100, " %")
    about = (word(name), word(prediction.by), level_cell(*quantities), number(workers, str(workers)))
    return Line(key=f"{base} predicted {workers}", cells=(*about, *quantities))


def _predicted(estimate: Estimate, factor: float, unit: str) -> Cell:
    value, low, high = (format_count(number * factor) for number in (estimate.value, *estimate.interval))
    return measured(estimate, f"{value}{unit} ({low}–{high})")
