"""What the processes of a run used: CPU and memory of each over time, on one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.compare import Comparison
from paceline.record.usage import Series, UsageCurves
from paceline.report.figures.figure import Figure, names_for, row_title
from paceline.report.sheet import Line, Sheet, fields, number, word
from paceline.report.svg import (
    WIDTH,
    Area,
    Attribute,
    Scale,
    across,
    apart,
    dash,
    mark,
    path,
    picture,
    series,
    text,
    told,
    upward,
)
from paceline.units import format_bytes, format_seconds

LEFT, RIGHT, TOP, PANEL, BETWEEN, BOTTOM = 76, 96, 40, 140, 76, 52
MOST_NAMES = 10
"""Names that fit beside a panel; of more processes none is named."""
LABEL = 14
UNITS = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
HOW_TO_READ = "Of the last run; children are counted with their process. CPU is the mean since the previous sample."


def resource_figures(comparison: Comparison, resources: Mapping[str, Sequence[UsageCurves]]) -> list[Figure]:
    """One figure for each row whose processes were metered for long enough."""
    rows = [row for row in comparison.rows if resources.get(row.key)]
    titles = [row_title(row) for row in rows]
    return [
        _figure(name, title, row.key, resources[row.key])
        for name, title, row in zip(names_for("resources", titles), titles, rows, strict=True)
    ]


def _figure(name: str, title: str, key: str, used: Sequence[UsageCurves]) -> Figure:
    upper = Area(left=LEFT, top=TOP, right=WIDTH - RIGHT, bottom=TOP + PANEL)
    lower = Area(left=LEFT, top=upper.bottom + BETWEEN, right=WIDTH - RIGHT, bottom=upper.bottom + BETWEEN + PANEL)
    end = max(process.rss_bytes.t_s[-1] for process in used)
    unit, name_of_unit = _unit(max(max(process.rss_bytes.values) for process in used))
    parts = _panel([(process.process, process.cores) for process in used], upper, "CPU, cores", 1.0, end)
    parts += _panel(
        [(process.process, process.rss_bytes) for process in used], lower, f"memory, {name_of_unit}", unit, end
    )
    return Figure(
        name=name,
        title=title,
        caption=HOW_TO_READ,
        svg=picture(f"CPU and memory of {len(used)} processes over time, {title}", lower.bottom + BOTTOM, parts),
        sheet=_sheet(key, used),
        points=_points(key, used),
    )


def _unit(most: float) -> tuple[float, str]:
    """The unit in which a size has a few digits before the point."""
    return next(((factor, name) for factor, name in UNITS if most >= factor), UNITS[-1])


def _panel(curves: Sequence[tuple[str, Series]], area: Area, title: str, unit: float, end: float) -> list[str]:
    most = max(max(curve.values) for _, curve in curves) / unit
    right = Scale(0.0, end, area.left, area.right)
    up = Scale(0.0, most * 1.05 or 1.0, area.bottom, area.top)
    parts = across(area, right, {t: format_seconds(t) if t else "0" for t in right.ticks()}, "since the meter started")
    parts += upward(area, up, {value: f"{value:g}" for value in up.ticks(4)}, title)
    for index, (name, curve) in enumerate(curves):
        places = [(right(t), up(value / unit)) for t, value in zip(curve.t_s, curve.values, strict=True)]
        parts.append(mark("g", told(name), _curve(index, places, kind="mark", data_process=name)))
    if len(curves) <= MOST_NAMES:
        ends = apart([up(curve.values[-1] / unit) for _, curve in curves], LABEL)
        for index, ((name, _), y) in enumerate(zip(curves, ends, strict=True)):
            sample = [(area.right + 4, y), (area.right + 20, y)]
            parts.append(_curve(index, sample))
            parts.append(text(area.right + 24, y + 4, name))
    return parts


def _curve(index: int, places: Sequence[tuple[float, float]], **attributes: Attribute) -> str:
    dashes = None if index == 0 else dash(index - 1)
    return path(places, stroke=series(index), stroke_width=1.6, stroke_dasharray=dashes, **attributes)


def _sheet(key: str, used: Sequence[UsageCurves]) -> Sheet:
    return Sheet(
        caption="Of the whole run, set-up included",
        fields=fields(
            process="process", mean_cores="CPU, mean", peak_cores="CPU, peak", process_peak_rss_bytes="memory, peak"
        ),
        lines=tuple(
            Line(
                key=key,
                cells=(
                    word(process.process),
                    number(process.mean_cores, _cores(process.mean_cores)),
                    number(process.peak_cores, _cores(process.peak_cores)),
                    number(process.peak_rss_bytes, format_bytes(process.peak_rss_bytes)),
                ),
            )
            for process in used
        ),
    )


def _points(key: str, used: Sequence[UsageCurves]) -> Sheet:
    lines = [
        Line(key=key, cells=(word(process.process), word(what), number(t, f"{t:.1f} s"), number(value, form(value))))
        for process in used
        for what, curve, form in (("cores", process.cores, _cores), ("rss_bytes", process.rss_bytes, format_bytes))
        for t, value in zip(curve.t_s, curve.values, strict=True)
    ]
    return Sheet(
        caption="CPU (cores) and resident memory over time; long curves keep the minimum and maximum of each interval",
        fields=fields(process="process", what="what", t_s="time", value="value"),
        lines=tuple(lines),
    )


def _cores(value: float) -> str:
    return f"{value:.2f} cores"
