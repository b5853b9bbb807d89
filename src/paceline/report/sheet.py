"""A table whose numbers are there in full beside their text: what a page shows and what its CSV holds."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from paceline.report import numbers
from paceline.stats.estimate import Estimate, finite


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One entry."""

    text: str
    """As a person reads it."""
    value: float | None = None
    """All digits of it; None: it is words."""
    low: float | None = None
    high: float | None = None
    """Ends of its interval, where the text has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One column."""

    name: str
    """The name for programs, such as "throughput"."""
    header: str
    """The header for people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One row."""

    key: str
    """What it is about: the key of a row of the comparison, the id of a trial …"""
    cells: tuple[Cell, ...]
    """One a field; the first names the row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """A table."""

    caption: str
    fields: tuple[Field, ...]
    lines: tuple[Line, ...]

    def csv(self) -> str:
        """Numbers with all their digits, an interval in columns of its own; begins with a header."""
        split = [any(line.cells[at].low is not None for line in self.lines) for at in range(len(self.fields))]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        header: list[str] = ["key"]
        for field, wide in zip(self.fields, split, strict=True):
            header += [field.name, *([f"{field.name}_low", f"{field.name}_high"] if wide else [])]
        writer.writerow(header)
        for line in self.lines:
            row: list[object] = [line.key]
            for cell, wide in zip(line.cells, split, strict=True):
                row.append(cell.text if cell.value is None else repr(cell.value))
                if wide:
                    row += ["" if end is None else repr(end) for end in (cell.low, cell.high)]
            writer.writerow(row)
        return out.getvalue()


def fields(**headers: str) -> tuple[Field, ...]:
    """Columns by name and header."""
    return tuple(Field(name=name, header=header) for name, header in headers.items())


def word(text: str | None) -> Cell:
    return Cell(text=text or "")


def number(value: float, text: str) -> Cell:
    return Cell(text=text, value=finite(value))


def measured(quantity: Estimate | None, text: str) -> Cell:
    """A quantity with its interval, or its absence."""
    if quantity is None:
        return Cell(text=numbers.NOTHING)
    low, high = finite(quantity.low), finite(quantity.high)
    return Cell(text=text, value=finite(quantity.value), low=low, high=high)
