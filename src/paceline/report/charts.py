"""Small charts made of characters: where a step goes, and throughput against workers. Need no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.compare import Comparison, Row
from paceline.report import numbers
from paceline.report.glyphs import IDEAL, MEASURED, PHASES, REST, UNSURE
from paceline.report.names import Names
from paceline.report.table import Column, draw

BAR = 30
"""Characters of a phase bar: one is about 3 % of a step."""
CHART_LEAST = 16
"""A narrower bar shows nothing."""
ROOM_FOR_DOUBT = 1.2
"""Two runs can have an interval ten times their mean: beyond this it is cut, the rest not squeezed."""


def phase_table(comparison: Comparison, names: Names, width: int) -> str:
    """One bar a row, cut in proportion to the phases, and the shares in numbers; "" with no phases."""
    rows = [row for row in comparison.rows if row.phases]
    if not rows:
        return ""
    phases = list(dict.fromkeys(phase for row in rows for phase in row.phases))
    signs = {phase: PHASES[index % len(PHASES)] for index, phase in enumerate(phases)}
    columns = [Column(header="the step", cells=tuple(phase_bar(row, signs) for row in rows), right=False)]
    for phase in phases:
        cells = tuple(
            numbers.share(row.phases[phase].share) if phase in row.phases else numbers.NOTHING for row in rows
        )
        columns.append(Column(header=signs[phase], cells=cells))
    rest = tuple(numbers.share(max(0.0, 1 - sum(p.share for p in row.phases.values()))) for row in rows)
    if set(rest) - {"0 %", "<1 %"}:
        columns.append(Column(header=REST, cells=rest))
        signs["other"] = REST
    table = draw(Column(header="", cells=tuple(names.of[row.key] for row in rows), right=False), columns, width)
    return f"{table}\n{_legend({sign: phase for phase, sign in signs.items()}, width)}"


def _legend(meanings: Mapping[str, str], width: int) -> str:
    lines = [""]
    for sign, meaning in meanings.items():
        item = f"{sign} {meaning}"
        if lines[-1] and len(lines[-1]) + 2 + len(item) > width:
            lines.append("")
        lines[-1] += f"  {item}" if lines[-1] else item
    return "\n".join(lines)


def phase_bar(row: Row, signs: Mapping[str, str], length: int = BAR) -> str:
    """The bar itself; ends of phases are rounded, so the lengths add up."""
    bar, end = "", 0.0
    for phase, sign in signs.items():
        if phase in row.phases:
            end += row.phases[phase].share
            bar = bar.ljust(min(length, round(end * length)), sign)
    return bar.ljust(length, REST)


def scaling_charts(comparison: Comparison, names: Names, width: int) -> str:
    """A chart for each family with at least two world sizes; "" where there is none."""
    charts = [_chart(comparison.row(base), rows, names, width) for base, rows in families(comparison).items()]
    if not charts:
        return ""
    legend = {MEASURED: "measured", UNSURE: "95 % interval", IDEAL: "ideal: as many times the workers"}
    return "\n\n".join([*charts, _legend(legend, width)])


def families(comparison: Comparison) -> dict[str, list[Row]]:
    """Key of the base → its rows with numbers, smallest first, where there are at least two world sizes."""
    found: dict[str, list[Row]] = {}
    for row in comparison.rows:
        if row.base is not None and row.throughput is not None:
            found.setdefault(row.base, []).append(row)
    return {
        base: sorted(rows, key=lambda row: row.workers)
        for base, rows in found.items()
        if len({row.workers for row in rows}) > 1
    }


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
