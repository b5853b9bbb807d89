"""The answer to the study's question in one or two sentences, where it can honestly be given, or why not.

A sentence for who is fastest, and one for how well it scales: what a manager could repeat. Cautions are in `cautions`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import Comparison, PairVerdict, Row, ScalingFamily, families
from paceline.report import numbers
from paceline.report.names import spoken_framework
from paceline.report.sentences import evidence_of, is_refused, ratio_text
from paceline.stats import Verdict
from paceline.stats.estimate import Estimate

MOST_PARTS = 2
"""Contests, or families, that an answer speaks of; the table has the rest."""


def answer_sentences(comparison: Comparison) -> list[str]:
    """Say which trial is fastest and by how much, then how well it scales; or why there is no answer yet."""
    measured = [row for row in comparison.rows if row.throughput is not None]
    if not measured:
        return [_nothing(comparison)]
    ranked = [pair for pair in comparison.verdicts if not is_refused(pair)]
    # What people ask about is the largest size that was run.
    largest = sorted(contests(ranked), key=lambda pairs: -comparison.row(pairs[0].a).workers)
    clauses = _briefly([_contest(comparison, pairs) for pairs in largest])
    by_speed = sorted(families(comparison), key=lambda family: -_speed(family.rows[-1]))
    scaling = _briefly([_scaling(comparison, family) for family in by_speed])
    sentences = [*_sentence(clauses, "comparisons"), *_sentence(scaling, "curves"), *_refusals(comparison)]
    return sentences or _sentence([_alone(row) for row in measured], "configurations")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Clause:
    """A part of a sentence."""

    whole: str
    about: tuple[str, ...] = ()
    """The subject of the clause; () if it has no short form."""
    short: str = ""
    """The short form, used after another clause about the same subject."""


def _briefly(clauses: Sequence[_Clause]) -> list[str]:
    """The first at length, and further ones about the same in short: "…; with 1 worker, 1.33 ×"."""
    return [
        clause.short if place and clause.about and clause.about == clauses[0].about else clause.whole
        for place, clause in enumerate(clauses)
    ]


def _sentence(clauses: Sequence[str], what: str) -> list[str]:
    """Clauses as one sentence; what an answer has no room for is counted."""
    if not clauses:
        return []
    left = len(clauses) - MOST_PARTS
    more = f" ({left} more {what if left > 1 else what.removesuffix('s')} in the table)" if left > 0 else ""
    text = "; ".join(clauses[:MOST_PARTS])
    # A clause may begin with a name, which keeps its small letter: "k=1 is …".
    return [f"{re.sub('^with ', 'With ', text)}{more}."]


def _nothing(comparison: Comparison) -> str:
    if not comparison.rows:
        return "No answer yet: nothing was run."
    first = next((row for row in comparison.rows if row.reason), comparison.rows[0])
    return f"No answer yet: no trial has a successful run ({first.label}: {first.outcome}, {first.reason})."


def contests(pairs: Sequence[PairVerdict]) -> list[list[PairVerdict]]:
    """Pairs that hang together: those of one question, in the order of the first of each."""
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        while (parent := parents.setdefault(key, key)) != key:
            key = parent
        return key

    for pair in pairs:
        parents[root(pair.b)] = root(pair.a)
    together: dict[str, list[PairVerdict]] = {}
    for pair in pairs:
        together.setdefault(root(pair.a), []).append(pair)
    return list(together.values())


def _contest(comparison: Comparison, pairs: Sequence[PairVerdict]) -> _Clause:
    members = list(dict.fromkeys(key for pair in pairs for key in (pair.a, pair.b)))
    names, where = _told_apart(comparison, [comparison.row(key) for key in members])
    best = max(members, key=lambda key: _speed(comparison.row(key)))
    pairs_of_best = [pair for pair in pairs if best in (pair.a, pair.b)]
    lost = {pair.b for pair in pairs_of_best if pair.a == best and pair.verdict == Verdict.DIFFERENT.words}
    rivals = [key for key in members if key != best and key not in lost]
    if rivals:
        close = [pair for pair in pairs_of_best if {pair.a, pair.b} & set(rivals)]
        equal = all(pair.verdict == Verdict.EQUAL.words for pair in close)
        how = f"are equally fast within {comparison.margin * 100:g} %" if equal else "cannot be told apart"
        # With its p: after Holm's correction an interval without 1 may still prove nothing.
        ratio = f" ({evidence_of(close[0])})" if len(close) == 1 else ""
        ahead = f", ahead of {_list([names[key] for key in members if key in lost])}" if lost else ""
        return _Clause(whole=f"{where}{_list([names[key] for key in (best, *rivals)])} {how}{ratio}{ahead}")
    closest = min(pairs_of_best, key=lambda pair: pair.ratio.value if pair.ratio else 0.0)
    of_all = f"the fastest of {len(members)}: " if len(members) > 2 else ""
    next_best = f"{names[closest.b]}, the next" if len(members) > 2 else names[closest.b]
    note = f"; {closest.note}" if closest.note else ""
    sure = _sure(numbers.known(closest.ratio))
    return _Clause(
        whole=f"{where}{names[best]} is {of_all}{ratio_text(closest)} × as fast as {next_best} ({sure}{note})",
        about=(names[best], names[closest.b], note) if where else (),
        short=f"{where}{ratio_text(closest)} ×",
    )


def _told_apart(comparison: Comparison, rows: Sequence[Row]) -> tuple[Mapping[str, str], str]:
    """Row key → what sets it apart from the other rows here, and what they all share: "with 2 workers, "."""
    parts = {row.key: row.label.split(" · ") for row in rows}
    shared = [part for part in parts[rows[0].key] if all(part in other for other in parts.values())]
    names = {}
    for row in rows:
        distinct = [spoken_framework(row, comparison, part) for part in parts[row.key] if part not in shared]
        names[row.key] = " · ".join(distinct) or row.label
    return names, f"with {_phrase(shared, rows[0])}, " if shared else ""


def _phrase(parts: Sequence[str], row: Row) -> str:
    """Join parts of a row's label into a phrase: "2 workers on 2 hosts over 1GbE"."""
    text = ", ".join(part for part in parts if part != row.network)
    return " ".join(words for words in (text, f"over {row.network}" if row.network in parts else "") if words)


def _refusals(comparison: Comparison) -> list[str]:
    notes = Counter(pair.note for pair in comparison.verdicts if is_refused(pair))
    return [f"{count} pair{'s' if count > 1 else ''} not ranked: {note}." for note, count in notes.items()]


def _speed(row: Row) -> float:
    return row.throughput.value if row.throughput else 0.0


def _sure(quantity: Estimate, factor: float = 1.0, unit: str = "") -> str:
    """Its interval with the level, or why there is none."""
    ends = numbers.interval(quantity, factor)
    if ends is None:
        return f"{numbers.counted(quantity.n_runs or 0, 'run')}: no interval"
    return f"{numbers.level(quantity.level)} interval {ends}{unit}"


def _scaling(comparison: Comparison, family: ScalingFamily) -> _Clause:
    base, row = family.base, family.rows[-1]
    speedup, efficiency = numbers.known(row.speedup), numbers.known(row.efficiency)
    sure = _sure(efficiency, 100, " %")
    only = "only " if speedup.high is not None and speedup.high < 1 else ""
    few, many = (member.label.split(" · ") for member in (base, row))
    small = _phrase([part for part in few if part not in many], base)
    large = _phrase([part for part in many if part not in few], row)
    shared = " · ".join(spoken_framework(row, comparison, part) for part in many if part in few)
    plural = "train" if row.workers > 1 else "trains"
    who = f"{shared}: " if shared else ""
    gained = f"{only}{numbers.value(speedup)} ×"
    share = f"efficiency {numbers.value(efficiency, 100)} %"
    return _Clause(
        whole=f"{who}{large} {plural} {gained} as fast as {small} ({share}, {sure})",
        about=(large, small) if shared else (),
        short=f"{who}{gained} ({share})",
    )


def _alone(row: Row) -> str:
    throughput = numbers.known(row.throughput)
    return f"{row.label}: {numbers.value(throughput)} samples/s ({_sure(throughput)})"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
