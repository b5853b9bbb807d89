"""A comparison as text for a terminal: tables, bars, warnings, verdicts. Finished numbers in, strings out.

Works without colour, at 80 columns, and after `glyphs.for_encoding` in plain ASCII. No number is ever cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.compare import Collectives, Comparison, Proof, Row
from paceline.report import numbers
from paceline.report.answer import answer, answer_sentences
from paceline.report.charts import scaling_charts
from paceline.report.collectives import collectives_answer, collectives_sentences, collectives_text
from paceline.report.fairness import fairness_sentences, fairness_table
from paceline.report.lists import items, paragraph, wrap
from paceline.report.names import Names, name_rows
from paceline.report.phases import apart_line, communication_table, derived_table, phase_table
from paceline.report.sentences import (
    failure_sentences,
    note_sentences,
    unscaled_sentences,
    verdict_sentences,
    warning_sentences,
)
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


def results_sentences(found: Comparison | Collectives) -> list[str]:
    """The same, one part after the other; the first is the one to remember."""
    return collectives_sentences(found) if isinstance(found, Collectives) else answer_sentences(found)


def report(
    *,
    study: str,
    question: str,
    results: Comparison | Collectives,
    machines: Iterable[Mapping[str, object]] = (),
    environments: Iterable[Mapping[str, object]] = (),
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

    scaled = [column("efficiency", (shown_efficiency(row) for row in rows))]
    columns = [
        column("runs", (shown_runs(row) for row in rows)),
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
    return items("Not ok", failure_sentences(comparison, names.of), width)


def warning_lines(comparison: Comparison, names: Names, width: int) -> str:
    return items("Warnings", warning_sentences(comparison, names.of), width)


def note_lines(comparison: Comparison, width: int) -> str:
    return items("Notes", [*note_sentences(comparison.notes), *unscaled_sentences(comparison)], width)


def shown_runs(row: Row) -> str:
    if row.outcome == "ok":
        return str(row.n_runs)
    return f"{row.n_runs} of {row.n_runs + row.n_failed}" if row.n_runs else row.outcome


def shown_efficiency(row: Row) -> str:
    return "base" if row.efficiency is not None and row.base == row.key else numbers.percent(row.efficiency)


def fact_texts(facts: Mapping[str, object]) -> dict[str, str]:
    """Facts in words, without those that say nothing."""
    shown = {name.removesuffix("_bytes"): _fact(name, value) for name, value in facts.items()}
    return {name: text for name, text in shown.items() if text}


def _facts(facts: Mapping[str, object], width: int) -> str:
    lines = [f"{name}: {text}" for name, text in fact_texts(facts).items()]
    return "\n".join(wrap(line, width, first="  ", rest="    ") for line in lines)


def _fact(name: str, value: object) -> str:
    """One fact in words; "" where there is nothing to say."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value[key]}" for key in sorted(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and name.endswith("_bytes"):
        return format_bytes(value)
    return "" if value is None else str(value)
