"""Collectives by themselves: time and bus bandwidth against the size of the message, both axes by doublings."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from paceline.compare import Collectives, CollectiveTable
from paceline.report import numbers
from paceline.report.collectives import charted, collective_title
from paceline.report.figures.figure import Figure, names_for
from paceline.report.sheet import Line, Sheet, fields, measured, number, word
from paceline.report.svg import WIDTH, Area, Scale, across, dot, line, path, picture, series, text, told, upward
from paceline.stats.estimate import Estimate
from paceline.units import format_bytes, format_seconds

LEFT, SIDE, TOP, UPPER, LOWER, BETWEEN, BOTTOM, KEY = 84, 14, 40, 250, 170, 84, 52, 18
HOW_TO_READ = (
    "Time of the slowest rank, median of a run's rounds; marks are means over runs, bars their 95 % intervals. Bus "
    "bandwidth is as defined by nccl-tests."
)


def collective_figures(collectives: Collectives) -> list[Figure]:
    """One figure of one framework's operations, or of one operation in several frameworks."""
    groups = [tables for tables in charted([table for table in collectives.tables if table.sizes]) if tables]
    titles = [_title(tables) for tables in groups]
    return [
        _figure(name, title, tables)
        for name, title, tables in zip(names_for("collectives", titles), titles, groups, strict=True)
    ]


def _title(tables: Sequence[CollectiveTable]) -> str:
    frameworks = dict.fromkeys(table.framework for table in tables)
    operations = dict.fromkeys(table.operation for table in tables)
    return f"{', '.join(operations)} · {', '.join(frameworks)}"


def _figure(name: str, title: str, tables: Sequence[CollectiveTable]) -> Figure:
    names = [line for table in tables for line in [collective_title(table)]]
    top = TOP + KEY * len(tables)
    upper = Area(left=LEFT, top=top, right=WIDTH - SIDE, bottom=top + UPPER)
    lower = Area(left=LEFT, top=upper.bottom + BETWEEN, right=WIDTH - SIDE, bottom=upper.bottom + BETWEEN + LOWER)
    parts = []
    for index, words in enumerate(names):
        y = 12 + KEY * index
        parts += [dot(index, 20, y), text(32, y + 4.5, textwrap.shorten(words, 96))]
    times = [[(row.size, row.time) for row in table.sizes] for table in tables]
    rates = [[(row.size, row.busbw) for row in table.sizes] for table in tables]
    parts += _panel(tables, times, upper, "time per operation", format_seconds)
    parts += _panel(tables, rates, lower, "bus bandwidth", _rate)
    return Figure(
        name=name,
        title=title,
        caption=HOW_TO_READ,
        svg=picture(f"Time and bus bandwidth against message size, {title}", lower.bottom + BOTTOM, parts),
        sheet=collective_sheet(tables),
    )


def _panel(
    tables: Sequence[CollectiveTable],
    curves: Sequence[Sequence[tuple[int, Estimate]]],
    area: Area,
    title: str,
    form: Callable[[float], str],
) -> list[str]:
    sizes = sorted({size for curve in curves for size, _ in curve})
    values = [
        end for curve in curves for _, estimate in curve for end in (estimate.value, estimate.low, estimate.high) if end
    ]
    right = Scale(sizes[0], max(sizes[-1], sizes[0] * 2), area.left + 10, area.right - 10, log=True)
    up = Scale(min(values), max(*values, min(values) * 1.01), area.bottom, area.top, log=True)
    ticks = sizes[:: max(1, -(-len(sizes) // 8))]
    parts = across(area, right, {size: format_bytes(size) for size in ticks}, "message")
    parts += upward(area, up, {value: form(value) for value in up.ticks()}, title)
    for index, (table, curve) in enumerate(zip(tables, curves, strict=True)):
        paint = series(index)
        parts.append(
            path([(right(size), up(estimate.value)) for size, estimate in curve], stroke=paint, stroke_width=1.6)
        )
        for size, estimate in curve:
            if estimate.low and estimate.high:
                parts.append(
                    line(right(size), up(estimate.low), right(size), up(estimate.high), stroke=paint, stroke_width=2)
                )
            words = told(f"{collective_title(table)}, {format_bytes(size)}: {form(estimate.value)}")
            parts.append(
                dot(
                    index,
                    right(size),
                    up(estimate.value),
                    words,
                    size=3.5,
                    kind="mark",
                    data_row=table.key,
                    data_value=repr(estimate.value),
                )
            )
    return parts


def _rate(value: float) -> str:
    return f"{value / 1e9:.3g} GB/s" if value >= 1e7 else f"{value / 1e6:.3g} MB/s"


def collective_sheet(tables: Sequence[CollectiveTable]) -> Sheet:
    """Time and bandwidth of every size."""
    return Sheet(
        caption="Time, algorithm and bus bandwidth by message size, with 95 % intervals",
        fields=fields(label="collective", size="message", time_s="time", algbw="algbw, GB/s", busbw="busbw, GB/s"),
        lines=tuple(
            Line(
                key=table.key,
                cells=(
                    word(collective_title(table)),
                    number(row.size, format_bytes(row.size)),
                    measured(row.time, numbers.seconds(row.time)),
                    measured(row.algbw, numbers.plain(row.algbw.times(1e-9))),
                    measured(row.busbw, numbers.plain(row.busbw.times(1e-9))),
                ),
            )
            for table in tables
            for row in table.sizes
        ),
    )
