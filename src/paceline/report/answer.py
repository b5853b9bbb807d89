"""The answer to the study's question in a sentence or two, where it can honestly be given, or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from paceline.compare import Comparison, PairVerdict, Row, families
from paceline.report import numbers
from paceline.report.sentences import evidence_of, is_refused, ratio_text
from paceline.stats import Verdict

MOST_PARTS = 3
"""Contests or families that an answer speaks of; the table has the rest."""


def answer(comparison: Comparison) -> str:
    """Who is fastest and how sure; how well it scales; or that nobody can tell yet."""
    return " ".join(answer_sentences(comparison))


def answer_sentences(comparison: Comparison) -> list[str]:
    """The same, one part after the other; the first is the one to remember."""
    measured = [row for row in comparison.rows if row.throughput is not None]
    if not measured:
        return [_nothing(comparison)]
    ranked = [pair for pair in comparison.verdicts if not is_refused(pair)]
    # What people ask about is the largest size that was run.
    largest = sorted(contests(ranked), key=lambda pairs: -comparison.row(pairs[0].a).workers)
    fastest = [_contest(comparison, pairs) for pairs in largest]
    scaling = [_scaling(one.base, one.rows[-1]) for one in families(comparison)]
    parts = [*_some(fastest, "contest", "contests"), *_some(scaling, "family", "families"), *_refusals(comparison)]
    if not parts:
        parts = _some([_alone(row) for row in measured], "trial", "trials")
    if any(row.simulated for row in measured):
        parts.append("Times are simulated.")
    if (bad := len(comparison.rows) - len({row.key for row in measured})) > 0:
        parts.append(f"{bad} of {len(comparison.rows)} trials {'has' if bad == 1 else 'have'} no good run.")
    return parts


def _nothing(comparison: Comparison) -> str:
    if not comparison.rows:
        return "No answer yet: nothing was run."
    first = next((row for row in comparison.rows if row.reason), comparison.rows[0])
    return f"No answer yet: no trial has a good run ({first.label}: {first.outcome}, {first.reason})."


def _some(parts: Sequence[str], one: str, what: str) -> list[str]:
    rest = len(parts) - MOST_PARTS
    return [*parts[:MOST_PARTS], *([f"({rest} more {what if rest > 1 else one} in the table.)"] if rest > 0 else [])]


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


def _contest(comparison: Comparison, pairs: Sequence[PairVerdict]) -> str:
    labels = {row.key: row.label for row in comparison.rows}
    members = list(dict.fromkeys(key for pair in pairs for key in (pair.a, pair.b)))
    best = max(members, key=lambda key: _speed(comparison.row(key)))
    own = [pair for pair in pairs if best in (pair.a, pair.b)]
    lost = {pair.b for pair in own if pair.a == best and pair.verdict == Verdict.DIFFERENT.words}
    rivals = [key for key in members if key != best and key not in lost]
    if rivals:
        equal = all(pair.verdict == Verdict.EQUAL.words for pair in own if {pair.a, pair.b} & set(rivals))
        how = f"equal within {comparison.margin * 100:g} %" if equal else "cannot be told apart"
        ahead = f", ahead of {_list([labels[key] for key in members if key in lost])}" if lost else ""
        return f"{_list([labels[key] for key in (best, *rivals)])}: {how}{ahead}."
    closest = min(own, key=lambda pair: pair.ratio or 0.0)
    note = f"; {closest.note}" if closest.note else ""
    return (
        f"{labels[best]} is the fastest of {len(members)}: {ratio_text(closest)} × as fast as "
        f"{labels[closest.b]} ({evidence_of(closest)}{note})."
    )


def _refusals(comparison: Comparison) -> list[str]:
    notes = Counter(pair.note for pair in comparison.verdicts if is_refused(pair))
    return [f"{count} pair{'s' if count > 1 else ''} not ranked: {note}." for note, count in notes.items()]


def _speed(row: Row) -> float:
    return row.throughput.value if row.throughput else 0.0


def _scaling(base: Row, row: Row) -> str:
    speedup, efficiency = numbers.known(row.speedup), numbers.known(row.efficiency)
    ends = numbers.interval(efficiency, 100)
    sure = f"{ends} %, 95 %, n={efficiency.n_runs}" if ends else "one run: how sure is unknown"
    only = "only " if speedup.high is not None and speedup.high < 1 else ""
    plural = "train" if row.workers > 1 else "trains"
    few, many = (one.label.split(" · ") for one in (base, row))
    small, large = (" · ".join(part for part in one if part not in other) for one, other in ((few, many), (many, few)))
    shared = " · ".join(part for part in many if part in few)
    return (
        f"{shared}{': ' if shared else ''}{large} {plural} {only}{numbers.value(speedup)} × as fast as {small} "
        f"(efficiency {numbers.value(efficiency, 100)} %, {sure})."
    )


def _alone(row: Row) -> str:
    throughput = numbers.known(row.throughput)
    ends = numbers.interval(throughput)
    sure = f"{ends}, 95 %, n={throughput.n_runs}" if ends else "one run: how sure is unknown"
    return f"{row.label}: {numbers.value(throughput)} samples/s ({sure})."


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
