"""Columns of text that never cut a number: what does not fit goes below, with the names repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = "  "


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column, as text."""

    header: str
    cells: tuple[str, ...]
    """One a row."""
    right: bool = True
    """Numbers stand at the right, words at the left."""

    @property
    def width(self) -> int:
        return max(map(len, (self.header, *self.cells)))

    def lines(self) -> list[str]:
        fit = str.rjust if self.right else str.ljust
        return [fit(text, self.width) for text in (self.header, "─" * self.width, *self.cells)]


def draw(names: Column, columns: Sequence[Column], width: int) -> str:
    """A table, or several below each other, each with the names, none too wide where that can be helped."""
    blocks: list[list[Column]] = []
    room = 0
    for column in columns:
        needed = len(GAP) + column.width
        if not blocks or needed > room:
            blocks.append([])
            room = width - names.width
        blocks[-1].append(column)
        room -= needed
    return "\n\n".join(_block([names, *block]) for block in blocks)


def _block(columns: Sequence[Column]) -> str:
    return "\n".join(GAP.join(cells).rstrip() for cells in zip(*(column.lines() for column in columns), strict=True))
