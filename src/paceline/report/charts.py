"""Small charts made of characters: throughput against workers. Need no colour."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import Comparison, Family, Row, families
from paceline.report import numbers
from paceline.report.glyphs import IDEAL, MEASURED, UNSURE
from paceline.report.names import Names
from paceline.report.phases import legend

CHART_LEAST = 16
"""A narrower bar shows nothing."""
ROOM_FOR_DOUBT = 1.2
"""Two runs can have an interval ten times their mean: beyond this it is cut, the rest not squeezed."""


def scaling_charts(comparison: Comparison, names: Names, width: int) -> str:
    """A chart for each workload, its families below each other on one scale; "" where no family has two sizes."""
    together: dict[tuple[str, str, int], list[Family]] = {}
    for family in families(comparison):
        together.setdefault(_workload(family), []).append(family)
    charts = [_chart(group, names, width) for group in together.values()]
    if not charts:
        return ""
    meanings = {MEASURED: "measured", UNSURE: "95 % interval", IDEAL: "ideal: as many times the workers"}
    return "\n\n".join([*charts, legend(meanings, width)])


def _workload(family: Family) -> tuple[str, str, int]:
    """What is trained: only the same work may share a scale."""
    base = family.base
    return base.workload, base.scaling, base.batch_global if base.scaling == "strong" else base.batch_per_worker


def _chart(group: Sequence[Family], names: Names, width: int) -> str:
    rows = [row for family in group for row in family.rows]
    labels = {row.key: names.of[row.key] for row in rows}
    texts = {row.key: numbers.plain(row.throughput) for row in rows}
    widest = max(map(len, labels.values()))
    length = max(CHART_LEAST, width - widest - max(map(len, texts.values())) - 4)
    largest = max(
        max(numbers.known(row.throughput).value, _ideal(family, row)) for family in group for row in family.rows
    )
    ends = [row.throughput.high for row in rows if row.throughput and row.throughput.high is not None]
    top = min(max(largest, *ends, 0.0), ROOM_FOR_DOUBT * largest)
    blocks = []
    for family in group:
        bars = [_bar(row, _ideal(family, row), length / top, length) for row in family.rows]
        lines = zip(family.rows, bars, strict=True)
        blocks.append("\n".join(f"{labels[row.key].ljust(widest)}  {bar}  {texts[row.key]}" for row, bar in lines))
    return "\n".join(["throughput, samples/s", "\n\n".join(blocks)])


def _ideal(family: Family, row: Row) -> float:
    return numbers.known(family.base.throughput).value / family.base.workers * row.workers


def _bar(row: Row, ideal: float, scale: float, length: int) -> str:
    quantity = numbers.known(row.throughput)
    low = quantity.value if quantity.low is None else quantity.low
    high = quantity.value if quantity.high is None else quantity.high
    bar = (MEASURED * round(low * scale)).ljust(round(high * scale), UNSURE).ljust(length)[:length]
    mark = min(length - 1, max(0, round(ideal * scale) - 1))
    # The base is its own ideal: a mark on it would only hide the end of its bar.
    return bar if row.key == row.base else bar[:mark] + IDEAL + bar[mark + 1 :]
