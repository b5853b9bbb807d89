"""Small charts made of characters: throughput against workers. Need no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.compare import Comparison, Row, families
from paceline.report import numbers
from paceline.report.glyphs import IDEAL, MEASURED, UNSURE
from paceline.report.phases import legend

CHART_LEAST = 16
"""A narrower bar shows nothing."""
CHART_MOST = 64
"""A longer bar takes the eye too far from its number."""
ROOM_FOR_DOUBT = 1.2
"""Two runs can have an interval ten times their mean: beyond this it is cut, the rest not squeezed."""


def scaling_charts(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    """A chart for each workload, its curves below each other on one scale; "" where none has two sizes."""
    charts: dict[tuple[str, str, int], dict[str, dict[str, Row]]] = {}
    for family in families(comparison):
        # Networks share their base: they are one block.
        curve = charts.setdefault(_workload(family.base), {}).setdefault(family.base.key, {})
        curve |= {row.key: row for row in family.rows}
    if not charts:
        return ""
    simulated = all(row.simulated for family in families(comparison) for row in family.rows)
    meanings = {
        MEASURED: "simulated" if simulated else "measured",
        UNSURE: "95 % interval",
        IDEAL: "ideal: linear speed-up",
    }
    drawn = [_chart([list(curve.values()) for curve in curves.values()], names, width) for curves in charts.values()]
    return "\n\n".join([*drawn, legend(meanings, width)])


def _workload(base: Row) -> tuple[str, str, int]:
    """What is trained: only the same work may share a scale."""
    return base.workload, base.scaling, base.batch_global if base.scaling == "strong" else base.batch_per_worker


def _chart(curves: Sequence[Sequence[Row]], names: Mapping[str, str], width: int) -> str:
    """Args: curves: the rows of each, its base first."""
    rows = [row for curve in curves for row in curve]
    titles, labels = zip(*(_labels(curve, names) for curve in curves), strict=True)
    texts = {row.key: numbers.plain(row.throughput) for row in rows}
    ideals = {row.key: _per_worker(curve[0]) * row.workers for curve in curves for row in curve}
    widest = max(len(label) for row_labels in labels for label in row_labels.values())
    room = width - widest - max(map(len, texts.values())) - 4
    length = min(CHART_MOST, max(CHART_LEAST, room))
    largest = max(max(numbers.known(row.throughput).value, ideals[row.key]) for row in rows)
    ends = [row.throughput.high for row in rows if row.throughput and row.throughput.high is not None]
    top = min(max(largest, *ends, 0.0), ROOM_FOR_DOUBT * largest)
    blocks = []
    for curve, title, row_labels in zip(curves, titles, labels, strict=True):
        lines = [f"{title}, samples/s" if title else "throughput, samples/s"]
        for row in curve:
            bar = _bar(row, ideals[row.key], length / top, length)
            lines.append(f"{row_labels[row.key].ljust(widest)}  {bar}  {texts[row.key]}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _labels(curve: Sequence[Row], names: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """What the rows of a curve share, and row key → what sets it apart."""
    parts = {row.key: names[row.key].split(" · ") for row in curve}
    shared = [part for part in parts[curve[0].key] if all(part in other for other in parts.values())]
    distinct = {
        key: " · ".join(part for part in words if part not in shared) or names[key] for key, words in parts.items()
    }
    return " · ".join(shared), distinct


def _per_worker(base: Row) -> float:
    return numbers.known(base.throughput).value / base.workers


def _bar(row: Row, ideal: float, scale: float, length: int) -> str:
    quantity = numbers.known(row.throughput)
    low, high = quantity.ends or (quantity.value, quantity.value)
    bar = (MEASURED * round(low * scale)).ljust(round(high * scale), UNSURE).ljust(length)[:length]
    mark = min(length - 1, max(0, round(ideal * scale) - 1))
    # The base is its own ideal: a mark on it would only hide the end of its bar.
    return bar if row.key == row.base else bar[:mark] + IDEAL + bar[mark + 1 :]
