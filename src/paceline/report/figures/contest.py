"""Who is faster: the throughput of all rows of one question as dots, each with its 95 % interval as a whisker."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import Comparison, Row
from paceline.report import numbers
from paceline.report.contests import questions
from paceline.report.figures.figure import Figure, names_for
from paceline.report.palette import GRID, SOFT
from paceline.report.sheet import Line, Sheet, fields, measured, number, word
from paceline.report.svg import WIDTH, Area, Scale, across, dot, heading, line, mark, picture, told
from paceline.stats.estimate import Estimate
from paceline.units import format_count

ROW, TOP, BOTTOM, SIDE = 44, 14, 52, 6
FROM_ZERO = 0.6
"""If the slowest row has less than this share of the fastest, the axis begins at zero; else dots would coincide."""
ROOM_FOR_DOUBT = 1.3
"""Two runs can have an interval ten times their mean: beyond this it is cut, the rest not squeezed."""
HOW_TO_READ = "Dots are means over runs, whiskers their 95 % intervals; further right is faster."
"""The caption that all of these figures share."""


def contest_figures(comparison: Comparison) -> list[Figure]:
    """One figure per question that several rows answer; rows without a rival together, model by model."""
    groups = _groups(comparison)
    titles = [_title(rows) for rows in groups]
    return [
        _figure(name, title, rows)
        for name, title, rows in zip(names_for("throughput", titles), titles, groups, strict=True)
    ]


def _groups(comparison: Comparison) -> list[list[Row]]:
    rows = [row for row in comparison.rows if row.throughput is not None]
    groups: dict[str, list[Row]] = {}
    home = {key: pairs[0].a for pairs in questions(comparison.verdicts) for pair in pairs for key in (pair.a, pair.b)}
    for row in rows:
        groups.setdefault(home.get(row.key, f"alone {row.workload}"), []).append(row)
    return list(groups.values())


def _title(rows: Sequence[Row]) -> str:
    """What all of them have in common."""
    first = rows[0]
    parts = [first.workload]
    if len({(row.workers, row.hosts, row.network) for row in rows}) == 1:
        parts.append(f"{first.workers} worker{'s' if first.workers != 1 else ''}")
        parts += [f"{first.hosts} hosts"] if first.hosts > 1 else []
        parts += [first.network] if first.network else []
    if len({row.batch_global for row in rows}) == 1:
        parts.append(f"batch {first.batch_global} in all")
    return " · ".join(parts)


def _figure(name: str, title: str, rows: Sequence[Row]) -> Figure:
    ordered = sorted(rows, key=lambda row: -_speed(row).value)
    height = TOP + ROW * len(ordered) + BOTTOM
    area = Area(left=SIDE, top=TOP, right=WIDTH - SIDE, bottom=height - BOTTOM)
    scale = _scale([_speed(row) for row in ordered], area)
    parts = across(area, scale, {value: format_count(value) for value in scale.ticks()}, "samples per second")
    for place, row in enumerate(ordered):
        parts += _row(place, row, area, scale)
    zero = [] if scale.low == 0 else ["The axis does not begin at zero."]
    cut = (
        ["An arrow: the interval extends beyond the axis."]
        if any(_is_cut(_speed(row), scale) for row in ordered)
        else []
    )
    return Figure(
        name=name,
        title=title,
        caption=" ".join([*zero, *cut]),
        svg=picture(f"Throughput with 95 % intervals, {title}. Fastest: {ordered[0].label}.", height, parts),
        sheet=_sheet(ordered),
    )


def _scale(speeds: Sequence[Estimate], area: Area) -> Scale:
    fastest, slowest = max(speed.value for speed in speeds), min(speed.value for speed in speeds)
    high = min(max([fastest, *(speed.high for speed in speeds if speed.high is not None)]), ROOM_FOR_DOUBT * fastest)
    low = max(min([slowest, *(speed.low for speed in speeds if speed.low is not None)]), slowest / ROOM_FOR_DOUBT)
    if low < FROM_ZERO * high or len(speeds) == 1:
        return Scale(0.0, high * 1.03, area.left, area.right)
    room = max(0.1 * (high - low), 0.005 * high)
    return Scale(low - room, high + room, area.left, area.right)


def _row(place: int, row: Row, area: Area, scale: Scale) -> list[str]:
    speed = _speed(row)
    top = area.top + ROW * place
    y = top + 28
    words = f"{numbers.plain(speed)}"
    parts = [
        line(area.left, y, area.right, y, stroke=GRID),
        *heading(area, top + 14, row.label, words),
    ]
    if speed.low is not None and speed.high is not None:
        ends = [min(max(end, scale.low), scale.high) for end in (speed.low, speed.high)]
        left, right = (scale(end) for end in ends)
        parts.append(line(left, y, right, y, stroke=SOFT, kind="whisker", stroke_width=2))
        parts += [
            _arrow(x, y, end < wanted) if end != wanted else line(x, y - 5, x, y + 5, stroke=SOFT, stroke_width=2)
            for x, end, wanted in zip((left, right), ends, (speed.low, speed.high), strict=True)
        ]
    title = told(f"{row.label}: {words} samples/s")
    return [*parts, dot(0, scale(speed.value), y, title, kind="mark", data_row=row.key, data_value=repr(speed.value))]


def _arrow(x: float, y: float, rightward: bool) -> str:
    tip = 7 if rightward else -7
    return mark("polygon", fill=SOFT, points=f"{x:.1f},{y - 5:.1f} {x + tip:.1f},{y:.1f} {x:.1f},{y + 5:.1f}")


def _is_cut(speed: Estimate, scale: Scale) -> bool:
    return (speed.low is not None and speed.low < scale.low) or (speed.high is not None and speed.high > scale.high)


def _speed(row: Row) -> Estimate:
    return numbers.known(row.throughput)


def _sheet(rows: Sequence[Row]) -> Sheet:
    return Sheet(
        caption="Throughput over all workers, samples per second, with its 95 % interval",
        fields=fields(label="trial", throughput="samples/s", runs="runs"),
        lines=tuple(
            Line(
                key=row.key,
                cells=(
                    word(row.label),
                    measured(row.throughput, numbers.plain(row.throughput)),
                    number(row.n_runs, str(row.n_runs)),
                ),
            )
            for row in rows
        ),
    )
