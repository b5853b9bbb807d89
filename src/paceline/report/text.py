"""A comparison as text for a terminal: tables, bars, warnings, verdicts. Finished numbers in, strings out.

Works without colour, at 80 columns, and after `glyphs.for_encoding` in plain ASCII. No number is ever cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paceline.compare import Collectives, Comparison, Proof, Row
from paceline.report import numbers
from paceline.report.answer import answer
from paceline.report.charts import scaling_charts
from paceline.report.collectives import collectives_answer, collectives_text
from paceline.report.fairness import fairness_sentences, fairness_table
from paceline.report.lists import items, paragraph, wrap
from paceline.report.names import Names, name_rows
from paceline.report.phases import apart_line, communication_table, derived_table, phase_table
from paceline.report.sentences import verdict_sentences
from paceline.report.table import Column, draw
from paceline.units import format_bytes

WIDTH = 80
"""Of a terminal that says nothing about itself."""


def comparison_table(comparison: Comparison, width: int = WIDTH) -> str:
    """Everything that `compare` shows: numbers, phases, scaling, verdicts, failures, warnings, notes."""
    names = name_rows(comparison, width)
    if not comparison.rows:
        return "nothing recorded yet"
    sections = [
        paragraph(comparison.shared, width),
        names.legend,
        measurement_table(comparison, names, width),
        phase_table(comparison, names, width),
        derived_table(comparison, names, width),
        communication_table(comparison, names, width),
        paragraph(apart_line(comparison, names), width),
        scaling_charts(comparison, names, width),
        verdict_lines(comparison, names, width),
        fairness_lines(comparison.proofs, width),
        failure_lines(comparison, names, width),
        warning_lines(comparison, names, width),
        note_lines(comparison, width),
    ]
    return "\n\n".join(section for section in sections if section)


def results_text(found: Comparison | Collectives, width: int = WIDTH) -> str:
    """What was measured, whichever sort of study it was."""
    return collectives_text(found, width) if isinstance(found, Collectives) else comparison_table(found, width)


def results_answer(found: Comparison | Collectives) -> str:
    """The answer in a sentence or some."""
    return collectives_answer(found) if isinstance(found, Collectives) else answer(found)


def report(
    *,
    study: str,
    question: str,
    results: Comparison | Collectives,
    machines: Iterable[Mapping[str, Any]] = (),
    environments: Iterable[Mapping[str, Any]] = (),
    command: str = "",
    width: int = WIDTH,
) -> str:
    """One readable text: question, answer, numbers, machine, environment, how to repeat it.

    Args:
        study: its name.
        question: in the user's words.
        results: the numbers.
        machines: facts about each machine that the records name.
        environments: facts about each environment, fingerprint included.
        command: what to type to do it all again.
        width: of the page, in characters.
    """
    title = f"# {study}"
    parts = [title, paragraph(question, width), paragraph(f"Answer: {results_answer(results)}", width)]
    parts += ["## Measured", results_text(results, width)]
    for heading, facts in (("## Machine", machines), ("## Environment", environments)):
        if blocks := [_facts(one, width) for one in facts]:
            parts += [heading, *blocks]
    if command:
        parts += ["## Repeat it", f"    {command}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def measurement_table(comparison: Comparison, names: Names, width: int) -> str:
    """Throughput, step time, efficiency, CPU and memory, each with its 95 % interval, and the runs."""
    rows = comparison.rows

    def column(header: str, cells: Iterable[str]) -> Column:
        return Column(header=header, cells=tuple(cells))

    scaled = [column("efficiency", (_efficiency(row) for row in rows))]
    columns = [
        column("runs", (_runs(row) for row in rows)),
        column("samples/s", (numbers.plain(row.throughput) for row in rows)),
        column("step", (numbers.seconds(row.step_s) for row in rows)),
        *(scaled if any(row.efficiency for row in rows) else []),
        column("CPU", (numbers.percent(row.cpu_utilisation) for row in rows)),
        column("memory", (numbers.size(row.peak_rss_bytes) for row in rows)),
    ]
    first = Column(header="", cells=tuple(names.of[row.key] for row in rows), right=False)
    table = draw(first, columns, width)
    return f"{table}\n(in brackets: 95 % interval of the mean over runs)" if "(" in table else table


def verdict_lines(comparison: Comparison, names: Names, width: int) -> str:
    return items("Verdicts", verdict_sentences(comparison, names.of), width)


def fairness_lines(proofs: Sequence[Proof], width: int) -> str:
    return items("Fairness", fairness_sentences(proofs), width)


def fairness_report(proofs: Sequence[Proof], width: int = WIDTH) -> str:
    """Everything that `check fairness` shows."""
    if not proofs:
        return "nothing to prove: no trial of this study trains a graph here"
    return f"{fairness_table(proofs, width)}\n\n{fairness_lines(proofs, width)}"


def failure_lines(comparison: Comparison, names: Names, width: int) -> str:
    failed = [row for row in comparison.rows if row.outcome != "ok"]
    return items("Not ok", [f"{names.of[row.key]}: {row.outcome}: {row.reason}" for row in failed], width)


def warning_lines(comparison: Comparison, names: Names, width: int) -> str:
    """Each warning once, with the rows it belongs to and what to do."""
    merged: dict[str, tuple[str, str, list[str]]] = {}
    for row in comparison.rows:
        for warning in row.warnings:
            row_name = f"{names.of[row.key]} ({warning.n_runs} of {row.n_runs} runs)"
            # The message is that of one run; in the others its numbers differ.
            message = warning.message if warning.n_runs == 1 else f"for example, {warning.message}"
            merged.setdefault(warning.code, (message, warning.hint, []))[2].append(row_name)
    lines = []
    for code, (message, hint, where) in merged.items():
        also = "" if len(where) == 1 else f"; also {', '.join(where[1:])}"
        lines.append(f"{code}: {where[0]}: {message}{also}{f'. Do: {hint}' if hint else ''}")
    return items("Warnings", lines, width)


def note_lines(comparison: Comparison, width: int) -> str:
    notes = [f"{note.message}{f'; {note.hint}' if note.hint else ''}" for note in comparison.notes]
    unscaled: dict[str, int] = {}
    for row in comparison.rows:
        if row.throughput is not None and row.efficiency_note:
            unscaled[row.efficiency_note] = unscaled.get(row.efficiency_note, 0) + 1
    notes += [f"no efficiency for {count} row(s): {why}" for why, count in unscaled.items()]
    return items("Notes", notes, width)


def _runs(row: Row) -> str:
    if row.outcome == "ok":
        return str(row.n_runs)
    return f"{row.n_runs} of {row.n_runs + row.n_failed}" if row.n_runs else row.outcome


def _efficiency(row: Row) -> str:
    return "base" if row.efficiency is not None and row.base == row.key else numbers.percent(row.efficiency)


def _facts(facts: Mapping[str, Any], width: int) -> str:
    shown = {name: _fact(name, value) for name, value in facts.items()}
    lines = [f"{name.removesuffix('_bytes')}: {text}" for name, text in shown.items() if text]
    return "\n".join(wrap(line, width, first="  ", rest="    ") for line in lines)


def _fact(name: str, value: Any) -> str:
    """One fact in words; "" where there is nothing to say."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value[key]}" for key in sorted(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and name.endswith("_bytes"):
        return format_bytes(value)
    return "" if value is None else str(value)
