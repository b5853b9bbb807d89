"""A comparison as text for a terminal: the answer and its caution, one table, and below it what they rest on.

Finished numbers in, strings out.
Works without colour, at 80 columns, and after `glyphs.for_encoding` in plain ASCII. No number is ever cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.compare import Collectives, Comparison, Proof, Row
from paceline.report import numbers
from paceline.report.charts import scaling_charts
from paceline.report.collectives import collectives_text
from paceline.report.fairness import fairness_in_short, fairness_sentences, fairness_table
from paceline.report.headline import headline_of
from paceline.report.lists import items, paragraph, wrap
from paceline.report.phases import apart_line, communication_table, derived_table, phase_table
from paceline.report.sentences import (
    failure_sentences,
    note_sentences,
    unscaled_sentences,
    verdict_sentences,
    warning_sentences,
    warnings_in_short,
    which_time,
)
from paceline.report.table import Column, draw
from paceline.units import format_bytes

WIDTH = 80
"""The width of a terminal that reports none."""


MORE = "(add --all for phases, CPU and memory, and for warnings and fairness in full)"


def comparison_table(comparison: Comparison, width: int = WIDTH, *, details: bool = False) -> str:
    """Everything that `compare` shows: answer, caution, one table, charts, verdicts, failures, warnings, notes.

    Args:
        details: with phases, CPU, memory, the proof of fairness, and each warning with all its rows.
    """
    names = {row.key: row.label for row in comparison.rows}
    if not comparison.rows:
        return "nothing recorded yet"
    sections = [
        answer_lines(comparison, width),
        paragraph(comparison.shared, width),
        measurement_table(comparison, names, width),
        *(_parts(comparison, names, width) if details else ()),
        scaling_charts(comparison, names, width),
        verdict_lines(comparison, names, width),
        fairness_lines(comparison.proofs, width, details=details),
        failure_lines(comparison, names, width),
        warning_lines(comparison, names, width, details=details),
        note_lines(comparison, width),
        "" if details else MORE,
    ]
    return "\n\n".join(section for section in sections if section)


def _parts(comparison: Comparison, names: Mapping[str, str], width: int) -> list[str]:
    """What a step consists of and what it takes."""
    return [
        usage_table(comparison, names, width),
        phase_table(comparison, names, width),
        derived_table(comparison, names, width),
        communication_table(comparison, names, width),
        paragraph(apart_line(comparison, names), width),
    ]


def results_text(results: Comparison | Collectives, width: int = WIDTH, *, details: bool = False) -> str:
    """What was measured, whichever sort of study it was, the answer first."""
    if isinstance(results, Collectives):
        return f"{answer_lines(results, width)}\n\n{collectives_text(results, width)}"
    return comparison_table(results, width, details=details)


def answer_lines(results: Comparison | Collectives, width: int) -> str:
    """The verdict, and its caution beside it."""
    headline = headline_of(results)
    lines = [paragraph(f"Answer: {' '.join(headline.answer)}", width)]
    if headline.caution:
        lines.append(paragraph(f"Caution: {' '.join(headline.caution)}", width))
    return "\n".join(lines)


def report(
    *,
    study: str,
    question: str,
    results: Comparison | Collectives,
    machines: Iterable[Mapping[str, object]] = (),
    environments: Iterable[Mapping[str, object]] = (),
    command: str = "",
    width: int = WIDTH,
    details: bool = False,
) -> str:
    """One readable text: answer, question, numbers, machine, environment, how to repeat it.

    Args:
        study: its name.
        question: in the user's words.
        results: the numbers.
        machines: facts about each machine that the records name.
        environments: facts about each environment, fingerprint included.
        command: what to type to do it all again.
        width: of the page, in characters.
        details: as of `comparison_table`.
    """
    heading_line = f"Study {study}: {question}" if question else f"Study {study}"
    answered, measured = results_text(results, width, details=details).split("\n\n", 1)
    parts = [answered, paragraph(heading_line, width), "## Measured", measured]
    for heading, facts in (("## Machine", machines), ("## Environment", environments)):
        if blocks := [_facts(block_facts, width) for block_facts in facts]:
            parts += [heading, *blocks]
    if command:
        parts += ["## Repeat it", f"    {command}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def measurement_table(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    """Throughput with its 95 % interval, step time, efficiency and the runs: what fits 80 columns."""
    rows = comparison.rows
    # A column that says the same in every row takes room from the names.
    alike = all(row.outcome == "ok" and row.n_runs == rows[0].n_runs for row in rows)
    efficiencies = [_column("efficiency", (shown_efficiency(row) for row in rows))]
    columns = [
        _column("samples/s", (numbers.over_runs(row.throughput) for row in rows)),
        _column("step time", (numbers.seconds_alone(row.step_s) if row.step_s else numbers.NOTHING for row in rows)),
        *(efficiencies if any(row.efficiency for row in rows) else []),
        *([] if alike else [_column("runs", (shown_runs(row) for row in rows))]),
    ]
    table = draw(_names_column(rows, names), columns, width)
    has_intervals = any(row.throughput and row.throughput.low is not None for row in rows)
    legend = [f"{numbers.counted(rows[0].n_runs, 'run')} each"] if alike else []
    legend += ["in brackets: 95 % interval of the mean over runs"] if has_intervals else []
    legend += [words] if (words := which_time(comparison)) else []
    return "\n".join([table, paragraph(f"({'; '.join(legend)})", width)] if legend else [table])


def usage_table(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    """Step time, CPU and memory, each with its 95 % interval."""
    rows = comparison.rows
    columns = [
        _column("step time", (numbers.seconds(row.step_s) for row in rows)),
        _column("CPU", (numbers.percent(row.cpu_utilisation) for row in rows)),
        _column("memory", (numbers.size(row.peak_rss_bytes) for row in rows)),
    ]
    return draw(_names_column(rows, names), columns, width)


def _column(header: str, cells: Iterable[str]) -> Column:
    return Column(header=header, cells=tuple(cells))


def _names_column(rows: Sequence[Row], names: Mapping[str, str]) -> Column:
    return Column(header="configuration", cells=tuple(names[row.key] for row in rows), right=False, wraps=True)


def verdict_lines(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    return items("Verdicts", verdict_sentences(comparison, names), width)


def fairness_lines(proofs: Sequence[Proof], width: int, *, details: bool = True) -> str:
    return items("Fairness", fairness_sentences(proofs) if details else fairness_in_short(proofs), width)


def fairness_report(proofs: Sequence[Proof], width: int = WIDTH) -> str:
    """Everything that `check fairness` shows."""
    if not proofs:
        return "nothing to prove: no trial of this study trains a graph here"
    return f"{fairness_table(proofs, width)}\n\n{fairness_lines(proofs, width)}"


def failure_lines(comparison: Comparison, names: Mapping[str, str], width: int) -> str:
    return items("Not ok", failure_sentences(comparison, names), width)


def warning_lines(comparison: Comparison, names: Mapping[str, str], width: int, *, details: bool) -> str:
    sentences = warning_sentences(comparison, names) if details else warnings_in_short(comparison)
    return items("Warnings", sentences, width)


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
