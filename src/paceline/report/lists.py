"""Paragraphs and lists of text, wrapped to a width; no word and no number is cut."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

_UNIT = re.compile(r"(?<=\d) (?=[%×]|(?:[mµn]?s|[KMGT]iB)\b)")
"""The blank between a number and its unit."""
_STAYS = "\u00a0"
"""A blank where no line ends."""


def items(heading: str, lines: Iterable[str], width: int) -> str:
    """A heading with one item per line; "" where there is none."""
    wrapped = [wrap(line, width, first="  - ", rest="    ") for line in lines]
    return "\n".join([heading, *wrapped]) if wrapped else ""


def paragraph(text: str, width: int) -> str:
    return wrap(text, width) if text else ""


def together(text: str) -> str:
    """The text with blanks at which no line may end between numbers and their units."""
    return _UNIT.sub(_STAYS, text)


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        together(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_STAYS, " ")
