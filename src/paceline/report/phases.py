"""The phases of a step as text; every number says where it comes from.

Measured phases are bars. The parts of a fused step are called derived. Communication is shown without waiting. What
comes before the first measured step is listed separately.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from paceline.compare import Comparison, Phase, Row
from paceline.record.phases import FUSED
from paceline.report import numbers
from paceline.report.glyphs import PHASES, REST
from paceline.report.table import GAP, Column, draw
from paceline.stats.estimate import Estimate

BAR = 30
"""Characters of a phase bar: one is about 3 % of a step."""
LEAST_BAR = 12
"""A shorter bar shows nothing; then numbers go below."""
BELOW_NOISE = "≈ 0 (below noise)"
HOW = {
    "timers": "timers",
    "law": "a law",
    "differences": "differences of separate programs",
    "operators": "operators of a profile",
}
"""Provenance → in words."""
APART = {
    "setup_s": "set-up",
    "compile_s": "of which compilation",
    "first_step_s": "first step",
    "compile_in_first_step_s": "of which compilation",
}
"""Field of a row → its words; "of which" refers to the entry before."""
HOW_DERIVED = HOW | {"timers": "timers of additional steps, run separately"}


def phase_table(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    """One bar per row, cut in proportion to its measured phases, and the shares in numbers; "" with no phases."""
    rows = [row for row in comparison.rows if row.phases]
    if not rows:
        return ""
    phases = list(dict.fromkeys(phase for row in rows for phase in row.phases))
    signs = {phase: PHASES[index % len(PHASES)] for index, phase in enumerate(phases)}
    columns = []
    for phase in phases:
        cells = tuple(
            numbers.share(row.phases[phase].share) if phase in row.phases else numbers.NOTHING for row in rows
        )
        columns.append(Column(header=signs[phase], cells=cells))
    rest = tuple(numbers.share(max(0.0, 1 - sum(p.share for p in row.phases.values()))) for row in rows)
    if set(rest) - {"0 %", "<1 %"}:
        columns.append(Column(header=REST, cells=rest))
    first = _first(rows, names)
    room = width - first.width - sum(GAP + column.width for column in columns) - GAP
    length = max(LEAST_BAR, min(BAR, room))
    bars = Column(header="the step", cells=tuple(phase_bar(row, signs, length) for row in rows), right=False)
    if columns[-1].header == REST:
        signs["other"] = REST
    origin = _origin({names[row.key]: _provenance(row.phases) for row in rows}, HOW)
    key = legend({sign: phase for phase, sign in signs.items()}, width)
    # What is mixed inside a fused step is told where it is derived.
    notes = _mixed_lines([row for row in rows if FUSED not in row.phases], names, width)
    return "\n".join([draw(first, [bars, *columns], width), key, textwrap.fill(f"phases {origin}", width), *notes])


def phase_bar(row: Row, signs: Mapping[str, str], length: int) -> str:
    """The bar itself; ends of phases are rounded, so the lengths add up."""
    bar, end = "", 0.0
    for phase, sign in signs.items():
        if phase in row.phases:
            end += row.phases[phase].share
            bar = bar.ljust(min(length, round(end * length)), sign)
    return bar.ljust(length, REST)


def derived_table(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    """What is inside fused steps, where it was derived; "" where nothing was."""
    rows = [row for row in comparison.rows if row.phases_derived]
    if not rows:
        return ""
    phases = list(dict.fromkeys(phase for row in rows for phase in row.phases_derived))
    columns = [
        Column(header=phase, cells=tuple(_derived(row.phases_derived.get(phase)) for row in rows)) for phase in phases
    ]
    origin = _origin({names[row.key]: _provenance(row.phases_derived) for row in rows}, HOW_DERIVED)
    heading = "inside the fused step, derived"
    return "\n".join(
        [
            heading,
            draw(_first(rows, names), columns, width),
            textwrap.fill(f"derived {origin}", width),
            *_mixed_lines(rows, names, width),
        ]
    )


def communication_table(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    """Transfer and waiting, where several ranks timed their communication; "" where none did."""
    rows = [row for row in comparison.rows if row.communication_transfer_s is not None]
    if not rows:
        return ""
    columns = [
        Column(
            header="communication (transfer)",
            cells=tuple(numbers.seconds_alone(numbers.known(row.communication_transfer_s)) for row in rows),
        ),
        Column(
            header="waiting",
            cells=tuple(numbers.seconds_alone(numbers.known(row.communication_waiting_s)) for row in rows),
        ),
    ]
    return draw(_first(rows, names), columns, width)


def apart_line(comparison: Comparison, names: Mapping[str, str]) -> str:
    """What the measured steps do not contain, the longest of each; "" where nothing is known."""
    parts = []
    for field, word in APART.items():
        times = {row.key: time for row in comparison.rows if (time := getattr(row, field)) is not None}
        if times:
            parts.append(f"{word} {_longest(times, names, len(comparison.rows))}")
    return f"Outside the measured steps: {', '.join(parts)}." if parts else ""


def legend(meanings: Mapping[str, str], width: int) -> str:
    """Signs and what they stand for, as many per line as fit."""
    lines = [""]
    for sign, meaning in meanings.items():
        item = f"{sign} {meaning}"
        if lines[-1] and len(lines[-1]) + 2 + len(item) > width:
            lines.append("")
        lines[-1] += f"  {item}" if lines[-1] else item
    return "\n".join(lines)


def _origin(names: Mapping[str, str], words: Mapping[str, str]) -> str:
    """Row → provenance as a phrase: one for all, or the rows of the rarer ones by name and then the others."""
    rows_of: dict[str, list[str]] = {}
    for row, by in names.items():
        rows_of.setdefault(by, []).append(row)
    *rarer, most = sorted(rows_of, key=lambda by: len(rows_of[by]))
    if not rarer:
        return f"by {words.get(most, most)}"
    listed = "; ".join(f"by {words.get(by, by)}: {', '.join(rows_of[by])}" for by in rarer)
    return f"{listed}; all others by {words.get(most, most)}"


def _provenance(phases: Mapping[str, Phase]) -> str:
    return ", ".join(dict.fromkeys(phase.by for phase in phases.values()))


def _first(rows: Iterable[Row], names: Mapping[str, str]) -> Column:
    return Column(header="configuration", cells=tuple(names[row.key] for row in rows), right=False, wraps=True)


def _derived(phase: Phase | None) -> str:
    if phase is None:
        return numbers.NOTHING
    return BELOW_NOISE if phase.below_noise else f"{numbers.seconds_alone(phase.time)}, {numbers.share(phase.share)}"


def _longest(times: Mapping[str, Estimate], names: Mapping[str, str], n_rows: int) -> str:
    longest = max(times, key=lambda key: times[key].value)
    text = numbers.seconds_alone(times[longest])
    if n_rows == 1:
        return text
    return f"{'up to ' if len(times) > 1 else ''}{text} ({names[longest]})"


def _mixed_lines(rows: Iterable[Row], names: Mapping[str, str], width: int) -> list[str]:
    """One note for each thing that phases hide: "communication and update cannot be told apart (…): rows"."""
    rows_of: dict[str, list[str]] = {}
    for row in rows:
        if row.phases_mixed:
            *others, last = row.phases_mixed.phases
            what = f"{', '.join(others)} and {last} cannot be told apart ({row.phases_mixed.why})"
            rows_of.setdefault(what, []).append(names[row.key])
    return [textwrap.fill(f"{what}: {', '.join(listed)}", width) for what, listed in rows_of.items()]
