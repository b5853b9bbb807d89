"""Collectives by themselves as text: the columns of nccl-tests, and time against size on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.compare import Collectives, CollectiveTable
from paceline.report import numbers
from paceline.report.lists import items, paragraph
from paceline.report.names import capital
from paceline.report.sentences import note_sentences, which_time
from paceline.report.table import Column, draw
from paceline.stats.estimate import Estimate, exactly

WIDTH = 80
CHART_ROWS = 12
"""Lines of the chart: two to three a decade of time."""
MARKS = "oxabcdefgh"
"""One for each table of a chart."""
MANY = "*"
"""The mark of a place that several tables share."""


def collectives_text(collectives: Collectives, width: int = WIDTH) -> str:
    """Everything that is shown of collectives: a table each, a chart, what failed, warnings, notes."""
    if not collectives.tables:
        return "nothing recorded yet"
    measured = [table for table in collectives.tables if table.sizes]
    sections = [
        paragraph(collectives.shared, width),
        *(_table(table, width) for table in measured),
        _legend(measured, which_time(collectives), width),
        *(_chart(tables, width) for tables in charted(measured)),
        items("Not ok", collective_failures(collectives), width),
        items("Warnings", collective_warnings(collectives.tables), width),
        items("Notes", note_sentences(collectives.notes), width),
    ]
    return "\n\n".join(section for section in sections if section)


def collective_title(table: CollectiveTable) -> str:
    """What was measured, in words."""
    library = f" ({table.library})" if table.library else ""
    hosts = f" on {table.hosts} hosts" if table.hosts > 1 else ""
    network = f", {table.network}" if table.network else ""
    simulated = ", simulated time" if table.simulated else ""
    return f"{table.framework}{library} {table.operation}, {table.ranks} ranks{hosts}{network}{simulated}"


def _table(table: CollectiveTable, width: int) -> str:
    rows = table.sizes

    def column(header: str, cells: Sequence[str]) -> Column:
        return Column(header=header, cells=tuple(cells))

    columns = [
        column("time(us)", [numbers.plain(row.time.times(1e6)) for row in rows]),
        column("algbw(GB/s)", [numbers.value(row.algbw, 1e-9) for row in rows]),
        column("busbw(GB/s)", [numbers.value(row.busbw, 1e-9) for row in rows]),
    ]
    sizes = column("size(B)", [str(row.size) for row in rows])
    counted = f"{table.n_runs} run{'s' if table.n_runs > 1 else ''} of {min(row.rounds for row in rows)} rounds"
    checked = "results verified" if table.verified else "bytes moved, no results to verify"
    return f"{collective_title(table)}: {counted}, {checked}\n{draw(sizes, columns, width)}"


def _legend(measured: Sequence[CollectiveTable], which: str, width: int) -> str:
    if not measured:
        return ""
    return paragraph(
        "time: slowest rank of each operation, median of a run's rounds; in brackets the 95 % interval of the mean "
        "over runs. algbw = size ÷ time; busbw as defined by nccl-tests. send_recv: half of the round trip."
        f"{f' {capital(which)}.' if which else ''}",
        width,
    )


def charted(measured: Sequence[CollectiveTable]) -> list[list[CollectiveTable]]:
    """Tables of one chart each: one framework's all together, of several those of one operation."""
    if len({table.framework for table in measured}) == 1:
        return [list(measured)]
    operations = dict.fromkeys(table.operation for table in measured)
    return [[table for table in measured if table.operation == operation] for operation in operations]


def _chart(measured: Sequence[CollectiveTable], width: int) -> str:
    """Time over size, both logarithmic; "" where there are no two sizes."""
    points = [(table.sizes, mark) for table, mark in zip(measured, MARKS, strict=False)]
    flat = [(row.size, row.time.value) for rows, _ in points for row in rows]
    if len({size for size, _ in flat}) < 2:
        return ""
    times = [time for _, time in flat]
    low, high = min(times), max(times)
    smallest, largest = min(size for size, _ in flat), max(size for size, _ in flat)
    labels = [numbers.seconds_alone(_seconds(time)) for time in (high, low)]
    margin = max(map(len, labels))
    length = width - margin - 2
    grid = [[" "] * length for _ in range(CHART_ROWS)]
    for rows, mark in points:
        for row in rows:
            line = CHART_ROWS - 1 - _place(row.time.value, low, high, CHART_ROWS)
            place = _place(row.size, smallest, largest, length)
            grid[line][place] = mark if grid[line][place] in {" ", mark} else MANY
    left = [labels[0], *[""] * (CHART_ROWS - 2), labels[1]]
    ends = [numbers.size(_bytes(size)) for size in (smallest, largest)]
    lines = ["time per operation against message size, both axes logarithmic"]
    lines += [f"{text.rjust(margin)} │{''.join(cells).rstrip()}" for text, cells in zip(left, grid, strict=True)]
    lines.append(" " * (margin + 2) + ends[0] + ends[1].rjust(length - len(ends[0])))
    lines += [f"  {mark} {collective_title(table)}" for table, mark in zip(measured, MARKS, strict=False)]
    if any(MANY in line for line in map("".join, grid)):
        lines.append(f"  {MANY} several of them")
    return "\n".join(lines)


def _place(value: float, low: float, high: float, places: int) -> int:
    if high <= low:
        return 0
    return round((places - 1) * math.log(value / low) / math.log(high / low))


def _seconds(value: float) -> Estimate:
    return exactly(value, "s", None)


def _bytes(value: float) -> Estimate:
    return exactly(value, "B", None)


def collective_failures(collectives: Collectives) -> list[str]:
    failed = [table for table in collectives.tables if table.outcome != "ok"]
    return [f"{collective_title(table)}: {table.outcome}: {table.reason}" for table in failed]


def collective_warnings(tables: Sequence[CollectiveTable]) -> list[str]:
    """Each warning once, with the tables it belongs to and what to do."""
    merged: dict[str, tuple[str, str, list[str]]] = {}
    for table in tables:
        for warning in table.warnings:
            name = f"{collective_title(table)} ({warning.n_runs} of {table.n_runs} runs)"
            merged.setdefault(warning.code, (warning.message, warning.hint, []))[2].append(name)
    return [
        f"{code}: {where[0]}: {message}{f'; also {len(where) - 1} more' if len(where) > 1 else ''}"
        f"{f'. Do: {hint}' if hint else ''}"
        for code, (message, hint, where) in merged.items()
    ]
