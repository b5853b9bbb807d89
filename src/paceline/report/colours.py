"""Which words of a text are coloured on a terminal. Adds style to finished text; never a character.

The colours are the terminal's own sixteen, so they suit light and dark backgrounds. Nothing is told by colour alone.
"""

from __future__ import annotations

from rich.highlighter import RegexHighlighter
from rich.theme import Theme

_PARAGRAPH = r"(?:[^\n]|\n(?!\n|Caution:|Answer:))*"
"""The rest of a paragraph, over its lines."""

STYLES = Theme(
    {
        "text.answer": "bold",
        "text.caution": "yellow",
        "text.heading": "bold",
        "text.interval": "dim",
        "text.rule": "dim",
        "text.error": "bold red",
        "text.hint": "cyan",
        "text.next": "cyan",
        "text.warning": "yellow",
        "text.done": "green",
        "text.first": "blue",
        "text.second": "cyan",
        "text.third": "bright_black",
        "text.fourth": "yellow",
        "text.fifth": "green",
        "text.sixth": "magenta",
        "bar.complete": "cyan",
        "bar.finished": "green",
        "bar.back": "bright_black",
    }
)
"""Style of each kind of words, and of each filling of a bar."""


class Words(RegexHighlighter):
    """Finds them in a text of several lines."""

    base_style = "text."
    highlights = (
        # Its first sentence: a full stop before a blank or at the end, not that of a number.
        r"(?m)^(?P<answer>Answer:(?:[^.]|\.(?!\s|$))*\.)",
        rf"(?m)^(?P<caution>Caution:{_PARAGRAPH})",
        r"(?m)^(?P<heading>#+ .+|[A-Z][\w ]*)$",
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
