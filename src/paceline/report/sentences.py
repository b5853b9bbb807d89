"""Verdicts as sentences that a colleague could say aloud. Receives finished verdicts; decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.compare import (
    DIFFERENT_MACHINES,
    NO_PROOF,
    NOT_COMPARABLE,
    Comparison,
    Factor,
    Note,
    PairVerdict,
    RowWarning,
)
from paceline.report import numbers
from paceline.stats import Verdict
from paceline.units import format_seconds

MOST_PAIRS = 12
"""With more pairs than this, only the sentences about the fastest row of each question are shown."""


def verdict_sentences(comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    """One sentence per pair, refusals gathered; with very many pairs only those about the fastest rows."""
    ranked = [pair for pair in comparison.verdicts if pair.ratio is not None]
    shown = ranked if len(ranked) <= MOST_PAIRS else _about_the_fastest(ranked)
    sentences = [verdict_sentence(pair, names) for pair in shown[:MOST_PAIRS]]
    if left := len(ranked) - len(sentences):
        sentences.append(f"({left} more pairs: see them with --json)")
    refusals: dict[tuple[str, str], list[PairVerdict]] = {}
    for pair in comparison.verdicts:
        if pair.ratio is None:
            refusals.setdefault((pair.verdict, pair.note or ""), []).append(pair)
    for (word, note), pairs in refusals.items():
        who = f"{names[pairs[0].a]} and {names[pairs[0].b]}" if len(pairs) == 1 else f"{len(pairs)} pairs"
        sentences.append(f"{who}: not ranked, {word}: {note}")
    return sentences


def failure_sentences(comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    """What was skipped or failed, and why."""
    failed = [row for row in comparison.rows if row.outcome != "ok"]
    return [f"{names[row.key]}: {row.outcome}: {row.reason}" for row in failed]


def warning_sentences(comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    """Each warning once, with the rows it belongs to and what to do."""
    merged: dict[str, tuple[str, str, list[str]]] = {}
    for row in comparison.rows:
        for warning in row.warnings:
            row_name = f"{names[row.key]} ({warning.n_runs} of {row.n_runs} runs)"
            # The message is that of one run; in the others its numbers differ.
            message = warning.message if warning.n_runs == 1 else f"for example, {warning.message}"
            merged.setdefault(warning.code, (message, warning.hint, []))[2].append(row_name)
    lines = []
    for code, (message, hint, where) in merged.items():
        also = "" if len(where) == 1 else f"; also {', '.join(where[1:])}"
        lines.append(f"{code}: {where[0]}: {message}{also}{f'. Do: {hint}' if hint else ''}")
    return lines


def warnings_in_short(comparison: Comparison) -> list[str]:
    """Each warning once: in how many runs, what was seen in one of them, and what to do.

    That times are simulated is said beside the answer.
    """
    total = sum(row.n_runs for row in comparison.rows)
    by_code: dict[str, list[RowWarning]] = {}
    for row in comparison.rows:
        for warning in row.warnings:
            if warning.code != "simulated":
                by_code.setdefault(warning.code, []).append(warning)
    return [
        f"{code} ({sum(warning.n_runs for warning in warnings)} of {numbers.counted(total, 'run')}): "
        f"{warnings[0].message}"
        f"{f'. Do: {warnings[0].hint}' if warnings[0].hint else ''}"
        for code, warnings in by_code.items()
    ]


def note_sentences(notes: Sequence[Note]) -> list[str]:
    """What was kept apart, and what to type about it."""
    return [f"{note.message}{f'; {note.hint}' if note.hint else ''}" for note in notes]


def unscaled_sentences(comparison: Comparison) -> list[str]:
    """Why rows have no efficiency."""
    unscaled: dict[str, int] = {}
    for row in comparison.rows:
        if row.throughput is not None and row.efficiency_note:
            unscaled[row.efficiency_note] = unscaled.get(row.efficiency_note, 0) + 1
    return [f"no efficiency for {count} row(s): {why}" for why, count in unscaled.items()]


def verdict_sentence(pair: PairVerdict, names: Mapping[str, str]) -> str:
    """What one ranked pair says."""
    a, b = names[pair.a], names[pair.b]
    evidence = f"({evidence_of(pair)})"
    if pair.verdict == Verdict.DIFFERENT.words:
        sentence = f"{a} is {ratio_text(pair)} × as fast as {b} {evidence}"
        if pair.factor:
            sentence += f"; {factor_text(pair.factor)}"
    elif pair.verdict == Verdict.EQUAL.words:
        sentence = f"{a} and {b} are equal within {pair.margin * 100:g} % {evidence}"
    else:
        sentence = f"{a} and {b} cannot be told apart {evidence}"
    return f"{sentence}; {pair.note}" if pair.note else sentence


def factor_text(factor: Factor) -> str:
    """What makes most of a difference, or at least more of it than any other part."""
    how = ", derived" if factor.derived else ""
    text = f"{_part_of_it(factor.share)} in {factor.phase}: {format_seconds(factor.seconds)} per step{how}"
    return f"{text} (they differ in {'; '.join(factor.differing)})" if factor.differing else text


def ratio_text(pair: PairVerdict) -> str:
    """How many times as fast, with the digits that the interval earns."""
    return numbers.value(numbers.known(pair.ratio))


def evidence_of(pair: PairVerdict) -> str:
    """Interval, its level, adjusted p value and number of runs."""
    quantity = numbers.known(pair.ratio)
    ends = numbers.interval(quantity)
    if ends is None:
        return f"ratio {ratio_text(pair)}, no interval, n={pair.n_runs}"
    # The p value is that of "no difference": beside "equal" it would only puzzle.
    silent = pair.p_adjusted is None or pair.verdict == Verdict.EQUAL.words
    # Holm's correction widens no interval: an interval without 1 beside a large p needs the word.
    adjusted = " adjusted" if pair.p_adjusted != pair.p else ""
    p = "" if silent else f", {numbers.p_value(pair.p_adjusted or 0.0)}{adjusted}"
    ratio = "" if pair.verdict == Verdict.DIFFERENT.words else f"ratio {ratio_text(pair)}, "
    return f"{ratio}{ends}, {numbers.level(quantity.level)}{p}, n={pair.n_runs}"


def is_refused(pair: PairVerdict) -> bool:
    return pair.verdict in {NO_PROOF, NOT_COMPARABLE, DIFFERENT_MACHINES}


def _part_of_it(share: float) -> str:
    percent = round(share * 100)
    if percent == 100:
        return "all of it"
    # Where other parts go the other way.
    words = "more than all of it" if percent > 100 else "most of it" if share > 0.5 else "the largest part of it"
    return f"{words}, {numbers.share(share)},"


def _about_the_fastest(pairs: Sequence[PairVerdict]) -> list[PairVerdict]:
    beaten = {pair.b for pair in pairs}
    return [pair for pair in pairs if pair.a not in beaten]
