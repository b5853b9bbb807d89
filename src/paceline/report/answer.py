"""The answer to the study's question in one or two sentences, where it can honestly be given, or why not.

A sentence for who is fastest, and one for how well it scales: what a manager could repeat. It stays short however many
configurations there are; the table has them all. Cautions are in `cautions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from paceline.compare import Comparison, Row
from paceline.report import numbers
from paceline.report.choice import choice_wordings
from paceline.report.names import parts_of, phrase, setting, where
from paceline.report.scaling import scaling_wordings

MOST_LETTERS = 300
"""The longest answer: four lines of a terminal."""


def answer_sentences(comparison: Comparison) -> list[str]:
    """Say which configuration is fastest and by how much, then how well it scales; or why there is no answer yet."""
    measured = [row for row in comparison.rows if row.throughput is not None]
    if not measured:
        return shortened((sentence,) for sentence in _nothing(comparison))
    choice = choice_wordings(comparison)
    scaling = scaling_wordings(comparison, at_length=not choice)
    if not choice and not scaling:
        return shortened((sentence,) for sentence in _alone(comparison, measured))
    # What is said at length of one must not crowd out the other: both are shortened in turn.
    places = product(range(len(choice) or 1), range(len(scaling) or 1))
    return shortened(
        (*(choice[first] if choice else ()), *(scaling[second] if scaling else ()))
        for first, second in sorted(places, key=sum)
    )


def shortened(wordings: Iterable[tuple[str, ...]]) -> list[str]:
    """The first wording that is short enough; the shortest of those given where none is."""
    given = list(wordings)
    fitting = (wording for wording in given if len(" ".join(wording)) <= MOST_LETTERS)
    return list(next(fitting, min(given, key=lambda wording: len(" ".join(wording)))))


def _nothing(comparison: Comparison) -> Iterator[str]:
    if not comparison.rows:
        yield "No answer yet: nothing was run."
        return
    first = next((row for row in comparison.rows if row.reason), comparison.rows[0])
    yield f"No answer yet: no trial has a successful run ({first.label}: {first.outcome}, {first.reason})."
    yield f"No answer yet: no trial has a successful run ({first.outcome}: the reasons are below)."


def _alone(comparison: Comparison, rows: Sequence[Row]) -> Iterator[str]:
    """Rows of which no two answer the same question, nor differ in their size alone."""
    ordered = sorted(rows, key=lambda row: -numbers.known(row.throughput).value)
    best, last = ordered[0], ordered[-1]
    begun = setting(_name(best, comparison))
    speed = numbers.known(best.throughput)
    alone = f"{begun}training runs at {numbers.value(speed)} samples/s ({numbers.sureness(speed)})"
    if len(rows) == 1:
        yield f"{alone}."
        yield f"Training runs at {numbers.value(speed)} samples/s ({numbers.sureness(speed)})."
        return
    slowest = numbers.value(numbers.known(last.throughput))
    if len(rows) == 2:
        yield f"{alone}; {where(_name(last, comparison))}, at {slowest}."
    fastest = numbers.value(speed)
    names = [_name(row, comparison) for row in (last, best)]
    what = f"{len(rows)} configurations that answer different questions run at"
    yield f"{what} {slowest} samples/s ({names[0]}) to {fastest} samples/s ({names[1]})."
    yield f"{what} {slowest} to {fastest} samples/s."


def _name(row: Row, comparison: Comparison) -> str:
    return phrase(parts_of(row, comparison), row)
