"""Where text is shown: in colour on a terminal that has it, as it is on pipes, in files and where NO_COLOR is set.

Rich is loaded only where there is colour to show.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from paceline.report.glyphs import for_encoding

if TYPE_CHECKING:
    from rich.console import Console


DUMB = frozenset({"", "dumb", "unknown"})
"""Values of TERM of terminals that know no escape codes."""
SIXTEEN = ("linux", "vt", "ansi", "cons")
"""How TERM begins where only sixteen colours are known; what calls itself xterm, screen or tmux has long known 256."""


def is_terminal(stream: TextIO) -> bool:
    """Whether a cursor can be moved there; a dumb terminal is as good as a pipe."""
    return stream.isatty() and os.environ.get("TERM", "") not in DUMB


def has_colour(stream: TextIO) -> bool:
    """Whether colour is wanted there: see no-color.org."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def console_of(stream: TextIO) -> Console:
    """A console on a terminal, with the colours of our words."""
    from rich.console import Console

    from paceline.report.colours import STYLES, Words

    few = os.environ.get("TERM", "").startswith(SIXTEEN)
    return Console(
        file=stream,
        force_terminal=True,
        force_jupyter=False,
        theme=STYLES,
        highlighter=Words(),
        markup=False,
        emoji=False,
        color_system=("standard" if few else "256") if has_colour(stream) else None,
    )


def put(text: str, stream: TextIO) -> None:
    """Show text in the letters that the stream has, at once, each line as it is."""
    text = for_encoding(text, stream.encoding)
    if has_colour(stream):
        console_of(stream).print(text, soft_wrap=True)
        stream.flush()
    else:
        print(text, file=stream, flush=True)
