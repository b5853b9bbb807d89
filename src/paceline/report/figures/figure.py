"""A figure: a picture, how to read it, and the numbers it is drawn from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.compare import Row
from paceline.report.sheet import Sheet

LONGEST_NAME = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One picture with its numbers."""

    name: str
    """The name of its files and its anchor: letters, digits, dashes; its patterns begin with it."""
    title: str
    caption: str
    """How to read it, in sentences; "" where that is said already."""
    svg: str
    sheet: Sheet
    """What a reader wants to look up."""
    points: Sheet | None = None
    """Everything that is drawn, where that is more than a reader would look up."""

    def csv(self) -> str:
        return (self.points or self.sheet).csv()


def names_for(kind: str, titles: Sequence[str]) -> list[str]:
    """A name for each title, none twice."""
    taken: list[str] = []
    for title in titles:
        words = re.sub(r"[^a-z0-9]+", "-", f"{kind} {title}".lower()).strip("-")[:LONGEST_NAME].strip("-")
        name, count = words, 1
        while name in taken:
            count += 1
            name = f"{words}-{count}"
        taken.append(name)
    return taken


def row_title(row: Row) -> str:
    """A row by itself: its label, with its framework where that sets nothing apart."""
    return row.label if row.label.startswith(row.framework) else f"{row.framework} · {row.label}"
