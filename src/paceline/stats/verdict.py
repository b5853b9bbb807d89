"""Do two trials differ: three verdicts, from adjusted p values of a difference test and an equivalence test."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal

ALPHA = 0.05
"""Tests err as often as 95 % intervals do, so a verdict and the interval beside it rarely disagree."""


VerdictWords = Literal["different", "equal within the margin", "cannot be told apart"]
"""How a report says a verdict."""


class Verdict(str, Enum):
    """The only three things a comparison may conclude."""

    DIFFERENT = "different"
    EQUAL = "equal"
    UNDECIDED = "undecided"

    @property
    def words(self) -> VerdictWords:
        """How a report says it."""
        return _WORDS[self]


_WORDS: dict[Verdict, VerdictWords] = {
    Verdict.DIFFERENT: "different",
    Verdict.EQUAL: "equal within the margin",
    Verdict.UNDECIDED: "cannot be told apart",
}


def holm(p_values: Sequence[float], *, further: int = 0) -> list[float]:
    """P values adjusted for being many, in the order given: compare each with alpha as if it were alone.

    Bounds the chance of even one false claim in the whole table, whatever the dependence between the tests
    (Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statistics 6, 1979).

    Args:
        p_values: of the tests that were made.
        further: tests that might have been made and were not, because of what the data showed. They count as those
            with the largest p values, which is the least favourable that they can be to the others.

    Raises:
        ValueError: A value outside [0, 1], or NaN.
    """
    if not all(0.0 <= p <= 1.0 for p in p_values):
        raise ValueError("p values must lie in [0, 1]")
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) + further - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def verdict(difference_p: float, equivalence_p: float, alpha: float = ALPHA) -> Verdict:
    """Conclude from the p values of `ratio_interval` and `equivalent`, each adjusted over a table by `holm`.

    Equality is asked first: with enough runs a difference of 0.1 % becomes significant, but when the same
    runs show that it is inside the margin, it is one that the reader has declared not to matter. A large p
    value alone never means equal, only that we cannot tell (Altman & Bland, "Absence of evidence is not
    evidence of absence", BMJ 311, 1995).

    Raises:
        ValueError: A p value outside [0, 1], or NaN.
    """
    if not (0.0 <= difference_p <= 1.0 and 0.0 <= equivalence_p <= 1.0):
        raise ValueError("p values must lie in [0, 1]")
    if equivalence_p < alpha:
        return Verdict.EQUAL
    return Verdict.DIFFERENT if difference_p < alpha else Verdict.UNDECIDED
