"""Which words of a text are coloured on a terminal. Adds style to finished text; never a character.

Nothing is told by colour alone. Colours are of middle brightness, so that they can be read on black and on white: the
terminal's own yellow and cyan vanish on a light background, its blue on a dark one.
"""

from __future__ import annotations

from rich.highlighter import RegexHighlighter
from rich.theme import Theme

_PARAGRAPH = r"(?:[^\n]|\n(?!\n|Caution:|Answer:))*"
"""The rest of a paragraph, over its lines."""

BLUE, TEAL, GREEN, ORANGE, RED, PURPLE, GREY = (f"color({number})" for number in (27, 30, 28, 130, 161, 133, 243))
"""Of the 256 colours that terminals have; where one has only sixteen, Rich takes the nearest."""
STYLES = Theme(
    {
        "text.answer": "bold",
        "text.caution": ORANGE,
        "text.heading": "bold",
        "text.interval": "dim",
        "text.rule": "dim",
        "text.error": f"bold {RED}",
        "text.hint": TEAL,
        "text.next": TEAL,
        "text.warning": ORANGE,
        "text.done": GREEN,
        "text.first": BLUE,
        "text.second": TEAL,
        "text.third": GREY,
        "text.fourth": ORANGE,
        "text.fifth": GREEN,
        "text.sixth": PURPLE,
        "bar.complete": TEAL,
        "bar.finished": GREEN,
        "bar.back": GREY,
    }
)
"""Style of each kind of words, and of each filling of a bar."""


class Words(RegexHighlighter):
    """Finds them in a text of several lines."""

    base_style = "text."
    highlights = (
        # Its first sentence: a full stop before a blank or at the end, not that of a number.
        r"(?m)^(?P<answer>(?:Answer:|Choose )(?:[^.]|\.(?!\s|$))*\.)",
        rf"(?m)^(?P<caution>Caution:{_PARAGRAPH})",
        # The title of a chapter, of a chart or of an explanation, and whatever a list follows.
        r"(?m)^(?P<heading>#+ .+|[A-Z][\w ]*|.*, samples/s|\S.*: step [\d.]+ [mµn]?s\b.*)$",
        r"(?m)^(?P<heading>\S.*)(?=\n  - )",
        r"(?P<interval>\([\d.,]+–[\d.,]+(?:, 9\d %)?\))",
        r"(?m)^(?P<rule>─[─ ]*)$",
        r"(?m)^(?P<error>error:)",
        r"(?m)^(?P<hint>hint:)",
        r"(?m)^(?P<next>next:.*)$",
        r"(?m)^\s*(?P<warning>warning:)",
        r"(?m)^(?P<done>written:)",
        r"(?P<first>█+)",
        r"(?P<second>▓+)",
        r"(?P<third>▒+)",
        r"(?P<fourth>[░│]+)",
        r"(?P<fifth>▚+)",
        r"(?P<sixth>▞+)",
    )
