"""Small charts made of characters: throughput against workers. Need no colour."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import Comparison, Row, families
from paceline.report import numbers
from paceline.report.glyphs import IDEAL, MEASURED, UNSURE
from paceline.report.names import Names
from paceline.report.phases import legend

CHART_LEAST = 16
"""A narrower bar shows nothing."""
ROOM_FOR_DOUBT = 1.2
"""Two runs can have an interval ten times their mean: beyond this it is cut, the rest not squeezed."""


def scaling_charts(comparison: Comparison, names: Names, width: int) -> str:
    """A chart for each family with at least two world sizes; "" where there is none."""
    charts = [_chart(one.base, one.rows, names, width) for one in families(comparison)]
    if not charts:
        return ""
    simulated = all(row.simulated for one in families(comparison) for row in one.rows)
    meanings = {
        MEASURED: "simulated" if simulated else "measured",
        UNSURE: "95 % interval",
        IDEAL: "ideal: as many times the workers",
    }
    return "\n\n".join([*charts, legend(meanings, width)])


def _chart(base: Row, rows: Sequence[Row], names: Names, width: int) -> str:
    per_worker = numbers.known(base.throughput).value / base.workers
    labels = [names.of[row.key] for row in rows]
    texts = [numbers.plain(row.throughput) for row in rows]
    length = max(CHART_LEAST, width - max(map(len, labels)) - max(map(len, texts)) - 4)
    largest = max(max(numbers.known(row.throughput).value, per_worker * row.workers) for row in rows)
    ends = [row.throughput.high for row in rows if row.throughput and row.throughput.high is not None]
    top = min(max(largest, *ends, 0.0), ROOM_FOR_DOUBT * largest)
    lines = ["throughput, samples/s"]
    for row, label, text in zip(rows, labels, texts, strict=True):
        bar = _bar(row, per_worker * row.workers, length / top, length)
        lines.append(f"{label.ljust(max(map(len, labels)))}  {bar}  {text}")
    return "\n".join(lines)


def _bar(row: Row, ideal: float, scale: float, length: int) -> str:
    quantity = numbers.known(row.throughput)
    low = quantity.value if quantity.low is None else quantity.low
    high = quantity.value if quantity.high is None else quantity.high
    bar = (MEASURED * round(low * scale)).ljust(round(high * scale), UNSURE).ljust(length)[:length]
    mark = min(length - 1, max(0, round(ideal * scale) - 1))
    # The base is its own ideal: a mark on it would only hide the end of its bar.
    return bar if row.key == row.base else bar[:mark] + IDEAL + bar[mark + 1 :]
