"""Tables of text that never cut a number, drawn by Rich.

Long names are wrapped inside their column; what does not fit even then goes below, with the names repeated. The result
is plain text of a fixed width: the same words go to terminals, pipes and files. Colour is added where they are shown.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

GAP = 2
"""Blanks between two columns."""
HANG = "  "
"""The indent of the further lines of a name."""
PARTING = " · "
"""Between the parts of a name."""
STAYS = "\N{NO-BREAK SPACE}"
"""A blank where no line ends."""
LEAST_NAMES = 16
"""Characters that names are not wrapped below, as long as a table further down can take the numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column, as text."""

    header: str
    cells: tuple[str, ...]
    """One per row."""
    right: bool = True
    """Numbers stand at the right, words at the left."""
    wraps: bool = False
    """Words that may be broken over several lines; numbers never are."""

    @property
    def width(self) -> int:
        return max(map(len, (self.header, *self.cells)))

    @property
    def least(self) -> int:
        """Characters that it needs: its longest word where it may be wrapped."""
        if not self.wraps:
            return self.width
        words = [word for text in (self.header, *self.cells) for word in text.split()]
        return min(self.width, len(HANG) + max(map(len, words), default=0))


def draw(names: Column, columns: Sequence[Column], width: int) -> str:
    """A table, or several below each other, each with the names, none too wide where that can be helped."""
    needed = min(names.width, max(names.least, LEAST_NAMES)) if names.wraps else names.width
    blocks: list[list[Column]] = []
    room = 0
    for column in columns:
        if not blocks or GAP + column.least > room:
            blocks.append([])
            room = width - needed
        blocks[-1].append(column)
        room -= GAP + column.least
    return "\n\n".join(_block([names, *block], width) for block in blocks)


def _block(columns: Sequence[Column], width: int) -> str:
    # Wide enough for what cannot be wrapped: a number that is cut is worse than a line that is too long.
    needed = sum(column.least for column in columns) + GAP * (len(columns) - 1)
    width = max(width, needed)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="")
    for column in columns:
        table.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
            min_width=column.least,
            overflow="fold",
        )
    rooms = [width - needed + column.least for column in columns]
    for cells in zip(*(column.cells for column in columns), strict=True):
        shown = zip(columns, cells, rooms, strict=True)
        table.add_row(*(Text(_hung(cell, room) if column.wraps else cell) for column, cell, room in shown))
    page = Console(
        file=StringIO(),
        width=width,
        height=len(columns[0].cells) + 2,
        color_system=None,
        force_terminal=False,
        force_jupyter=False,
        legacy_windows=False,
    )
    with page.capture() as drawn:
        page.print(table)
    return "\n".join(line.rstrip() for line in drawn.get().splitlines())


def _hung(text: str, room: int) -> str:
    """Wrap a name over several lines between its parts, and indent all but the first, so that rows stay distinct."""
    parts = [part.replace(" ", STAYS) if len(HANG) + len(part) <= room else part for part in text.split(PARTING)]
    wrapped = textwrap.fill(
        PARTING.join(parts), room, subsequent_indent=HANG, break_long_words=False, break_on_hyphens=False
    )
    return wrapped.replace(STAYS, " ")
