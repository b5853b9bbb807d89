"""Colours of pages and pictures, by name, for light and for dark: the one place that knows them. Plain data.

Text has at least 4.5 : 1 against the paper and every line that means something 3 : 1, in both modes (WCAG 2.2 AA, held
by a test). No meaning is in colour alone: series have marks and dashes of their own, phases have hatches.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shades:
    """One colour in both modes."""

    light: str
    dark: str


PAPER, INK, SOFT, GRID = "paper", "ink", "soft", "grid"
GROUND = {
    PAPER: Shades("#ffffff", "#14171a"),
    INK: Shades("#1c2126", "#e7e9eb"),
    SOFT: Shades("#545d66", "#a4adb5"),
    GRID: Shades("#e3e6e9", "#2d343a"),
    "panel": Shades("#f5f6f7", "#1c2024"),
    "link": Shades("#0b5c85", "#7cc4ea"),
    "doubt": Shades("#8a4b00", "#e9b46a"),
}
"""What pages are made of; "panel" lies behind code, "doubt" marks warnings."""

SERIES = tuple(f"series{number}" for number in range(6))
LINES = {
    "series0": Shades("#0b6e99", "#69bfe6"),
    "series1": Shades("#b5541c", "#f0a06c"),
    "series2": Shades("#3f7d20", "#93cd70"),
    "series3": Shades("#7a3e9d", "#cc9fe8"),
    "series4": Shades("#7d6300", "#d8bd52"),
    "series5": Shades("#a3195b", "#f08cb7"),
}
"""Paints of series, such as frameworks, strategies or ranks."""

EDGES = {
    "data": Shades("#5d6b1f", "#b4c36a"),
    "forward": Shades("#2b6cb0", "#7fb4ea"),
    "backward": Shades("#1f4e86", "#9cc2f0"),
    "communication": Shades("#b5541c", "#f0a06c"),
    "update": Shades("#7a3e9d", "#cc9fe8"),
    "overhead": Shades("#545d66", "#a4adb5"),
    "step": Shades("#0b6e6e", "#6cc9c9"),
    "other": Shades("#6b737b", "#98a1a9"),
}
"""Paints of the border and the hatch of a phase."""
FILLS = {
    "data": Shades("#eef2d8", "#2b3014"),
    "forward": Shades("#dcebfa", "#17293c"),
    "backward": Shades("#c6dcf3", "#1d3652"),
    "communication": Shades("#fae3d4", "#43261a"),
    "update": Shades("#efe0f7", "#33213f"),
    "overhead": Shades("#e9ebed", "#2a3036"),
    "step": Shades("#d5efef", "#143434"),
    "other": Shades("#f3f4f5", "#20252a"),
}
"""Paints of the background of a phase, on which text is drawn."""


def known_phase(phase: str) -> str:
    """The phase itself, or "other" for those that no list knows: a program may call its phases what it likes."""
    return phase if phase in EDGES else "other"


def edge(phase: str) -> str:
    """The paint of a phase's border."""
    return f"{known_phase(phase)}-edge"


def ground(phase: str) -> str:
    """The paint on which a phase's label stands."""
    return f"{known_phase(phase)}-fill"


PAINTS: dict[str, Shades] = {
    **GROUND,
    **LINES,
    **{f"{name}-edge": shades for name, shades in EDGES.items()},
    **{f"{name}-fill": shades for name, shades in FILLS.items()},
}
"""Every paint by its name."""


def style() -> str:
    """Variables for both modes and paper, and a class for each paint of a picture: `f-` fills, `s-` strokes."""
    light = "".join(f"--{name}:{shades.light};" for name, shades in PAINTS.items())
    dark = "".join(f"--{name}:{shades.dark};" for name, shades in PAINTS.items())
    classes = "".join(f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in PAINTS)
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{classes}\n"
    )
