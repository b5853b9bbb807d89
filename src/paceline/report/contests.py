"""Rows that answer one question, and which of them are the fastest as far as that is proven. Decides nothing anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import Comparison, PairVerdict
from paceline.report.names import told_apart
from paceline.report.sentences import is_refused
from paceline.stats import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """One question."""

    workers: int
    """How many all of its rows have."""
    where: str
    """What all of its rows share, in a phrase; "" where that is nothing."""
    names: Mapping[str, str]
    """Row key → what sets it apart from the others."""
    leaders: tuple[str, ...]
    """Keys of the fastest row, and of those that are not proven slower."""
    closest: PairVerdict
    """The fastest row and the one that comes closest to it, among the leaders where there are several."""
    equal: bool
    """Whether all leaders are proven equally fast."""

    @property
    def winner(self) -> str | None:
        """The name of the row that is proven faster than all others; None where there is none."""
        return self.names[self.leaders[0]] if len(self.leaders) == 1 else None

    @property
    def leading(self) -> list[str]:
        return [self.names[key] for key in self.leaders]

    @property
    def beaten(self) -> list[str]:
        return [name for key, name in self.names.items() if key not in self.leaders]


def contests_of(comparison: Comparison) -> list[Contest]:
    """Every question with a ranking, the largest size first: that is what people ask about."""
    ranked = [pair for pair in comparison.verdicts if not is_refused(pair)]
    contests = [_contest(comparison, pairs) for pairs in questions(ranked)]
    return sorted(contests, key=lambda contest: -contest.workers)


def questions(pairs: Sequence[PairVerdict]) -> list[list[PairVerdict]]:
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


def _contest(comparison: Comparison, pairs: Sequence[PairVerdict]) -> Contest:
    keys = list(dict.fromkeys(key for pair in pairs for key in (pair.a, pair.b)))
    names, where = told_apart(comparison, [comparison.row(key) for key in keys])
    best = max(keys, key=lambda key: _speed(comparison, key))
    pairs_of_best = [pair for pair in pairs if best in (pair.a, pair.b)]
    slower = {pair.b for pair in pairs_of_best if pair.a == best and pair.verdict == Verdict.DIFFERENT.words}
    rivals = [key for key in keys if key != best and key not in slower]
    rivals.sort(key=lambda key: -_speed(comparison, key))
    close = [pair for pair in pairs_of_best if not rivals or {pair.a, pair.b} & set(rivals)]
    return Contest(
        workers=comparison.row(best).workers,
        where=where,
        names=names,
        leaders=(best, *rivals),
        closest=min(close, key=lambda pair: pair.ratio.value if pair.ratio else 0.0),
        equal=bool(rivals) and all(pair.verdict == Verdict.EQUAL.words for pair in close),
    )


def _speed(comparison: Comparison, key: str) -> float:
    throughput = comparison.row(key).throughput
    return throughput.value if throughput else 0.0
