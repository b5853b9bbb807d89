"""The answer of a study of collectives: which carries most, and how long a small message takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.compare import Collectives, CollectiveTable
from paceline.compare.collectives import SizeRow
from paceline.report import numbers
from paceline.report.answer import shortened
from paceline.report.collectives import collective_title
from paceline.stats.estimate import exactly


def collectives_sentences(collectives: Collectives) -> list[str]:
    """At most two sentences, however many collectives were measured; or why there is no answer."""
    measured = [table for table in collectives.tables if table.sizes]
    if not measured:
        failed = next((table for table in collectives.tables if table.reason), None)
        why = f" ({failed.outcome}: {failed.reason})" if failed else ""
        return shortened([(f"No answer yet: no collective was measured{why}.",), ("No collective was measured.",)])
    if len(measured) == 1:
        return shortened((wording,) for wording in _one(measured[0]))
    return shortened(_several(measured))


def _one(table: CollectiveTable) -> Iterator[str]:
    small, best = table.sizes[0], _best(table)
    sure = numbers.sureness(best.busbw, 1e-9, " GB/s")
    reached = f"bus bandwidth reaches {_bandwidth(best)} at {_size(best)} ({sure})"
    yield f"With {collective_title(table)}, {_size(small)} take {numbers.seconds_alone(small.time)}; {reached}."
    yield f"A message of {_size(small)} takes {numbers.seconds_alone(small.time)}; {reached}."


def _several(tables: Sequence[CollectiveTable]) -> Iterator[tuple[str, ...]]:
    """Who carries most and who least, and what the smallest message takes; then with fewer names, which may be long."""
    most, *_, least = sorted(tables, key=lambda table: -_best(table).busbw.value)
    quick, *_, slow = sorted(tables, key=lambda table: table.sizes[0].time.value)
    high, low = _bandwidth(_best(most)), _bandwidth(_best(least))
    sure = numbers.sureness(_best(most).busbw, 1e-9, " GB/s")
    sizes = {table.sizes[0].size for table in tables}
    message = f"A message of {_size(quick.sizes[0])}" if len(sizes) == 1 else "The smallest message"
    short, long = (numbers.seconds_alone(table.sizes[0].time) for table in (quick, slow))
    highest = f"Bus bandwidth is highest with {_name(most)}: {high} at {_size(_best(most))}"
    named = f"{message} takes {short} ({_name(quick)}) to {long} ({_name(slow)})."
    unnamed = f"{message} takes {short} to {long}."
    yield f"{highest} ({sure}); it is lowest with {_name(least)}: {low}.", named
    yield f"{highest} ({sure}); it is lowest with {_name(least)}: {low}.", unnamed
    yield f"{highest}; the lowest is {low}.", unnamed
    yield f"Bus bandwidth reaches {low} to {high}.", unnamed


def _name(table: CollectiveTable) -> str:
    return table.label.replace(" · ", ", ")


def _best(table: CollectiveTable) -> SizeRow:
    return max(table.sizes, key=lambda row: row.busbw.value)


def _bandwidth(row: SizeRow) -> str:
    return f"{numbers.value(row.busbw, 1e-9)} GB/s"


def _size(row: SizeRow) -> str:
    return numbers.size(exactly(row.size, "B", None))
