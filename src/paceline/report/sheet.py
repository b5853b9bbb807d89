"""A table whose numbers are there in full beside their text: what a page shows and what its CSV holds."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from paceline.report import numbers
from paceline.stats.estimate import Estimate, finite

LEVEL = "level"
"""Name of the column that says the level of the intervals of a line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One entry."""

    text: str
    """As a person reads it."""
    number: float | Estimate | None = None
    """What the text is about, with its interval where it is not exact; None: it is words."""

    @property
    def value(self) -> float | None:
        """All digits of the number; None for words, and where it is not finite."""
        return finite(self.number.value if isinstance(self.number, Estimate) else self.number)

    @property
    def low(self) -> float | None:
        """Lower end of the interval; None where there is none."""
        return finite(self.number.low) if isinstance(self.number, Estimate) else None

    @property
    def high(self) -> float | None:
        """Upper end of the interval; None where there is none."""
        return finite(self.number.high) if isinstance(self.number, Estimate) else None

    @property
    def level(self) -> float | None:
        """Level of the interval; None without one, and for what is known exactly, such as the base of a ratio."""
        if not isinstance(self.number, Estimate) or self.low == self.high:
            return None
        return self.number.level


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
    """A table.

    Intervals of different levels share a table only if it has the column LEVEL, so that no reader holds a 90 % interval
    against a 95 % one unawares.

    Raises:
        ValueError: intervals of different levels, or an interval whose level its line does not name.
    """

    caption: str
    fields: tuple[Field, ...]
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        levels = [{cell.level for cell in line.cells} - {None} for line in self.lines]
        if len(set().union(*levels)) < 2:
            return
        names = [field.name for field in self.fields]
        named = [line.cells[names.index(LEVEL)].value if LEVEL in names else None for line in self.lines]
        if any(own - {name} for own, name in zip(levels, named, strict=True)):
            raise ValueError(f"intervals of several levels in one table, unmarked: {self.caption}")

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


def level_cell(*cells: Cell) -> Cell:
    """What the column LEVEL says of a line with these cells, whose intervals share a level."""
    level = next((cell.level for cell in cells if cell.level is not None), None)
    return word(numbers.NOTHING) if level is None else number(level, numbers.level(level))


def fields(**headers: str) -> tuple[Field, ...]:
    """Columns by name and header."""
    return tuple(Field(name=name, header=header) for name, header in headers.items())


def word(text: str | None) -> Cell:
    return Cell(text=text or "")


def number(value: float, text: str) -> Cell:
    return Cell(text=text, number=value)


def measured(quantity: Estimate | None, text: str) -> Cell:
    """A quantity with its interval, or its absence."""
    return Cell(text=numbers.NOTHING) if quantity is None else Cell(text=text, number=quantity)
