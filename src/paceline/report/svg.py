"""Pictures: from values to places, from places to SVG. Scales, axes and marks; knows nothing of what is drawn.

Every colour is there twice: as an attribute, so that a picture by itself looks the same in any program, on paper and
after conversion; and as a class (`palette.style`), by which a page gives it the colours of its reader's mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from paceline.report.palette import GRID, INK, PAINTS, PAPER, SERIES, SOFT, edge, ground, known_phase

NAMESPACE = "http://www.w3.org/2000/svg"
WIDTH = 720
"""The width of every picture, in its own units: as wide as the text of a page."""
FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"
SIZE = 13
"""The font size."""
LETTER = 0.56 * SIZE
"""Width of a letter on average, in this font: what is set beside something must know how long it is."""
DASHES = ("8 4", "8 3 2 3", "4 3", "14 4", "8 3 2 3 2 3", "4 3 1 3")
DOTTED = "1.5 4"
MARKERS = ("circle", "square", "triangle", "diamond", "wedge", "cross")
"""Series differ without colour too."""
MOST_TICKS = 7

Attribute: TypeAlias = str | float | None


def series(index: int) -> str:
    """The paint of a series."""
    return SERIES[index % len(SERIES)]


def dash(index: int) -> str:
    return DASHES[index % len(DASHES)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Area:
    """A part of a picture."""

    left: float
    top: float
    right: float
    bottom: float


class Scale:
    """Maps a value to a place, linearly or logarithmically."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False) -> None:
        self.low, self.high, self.log = low, high, log
        self._from = math.log(low) if log else low
        self._width = max((math.log(high) if log else high) - self._from, 1e-12)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        at = ((math.log(value) if self.log else value) - self._from) / self._width
        return self._start + at * (self._end - self._start)

    def inside(self, value: float) -> float:
        """The place of a value, clamped to the ends of the scale."""
        return self(min(max(value, self.low), self.high))

    def ticks(self, most: int = MOST_TICKS) -> list[float]:
        """Round values inside, no more than so many."""
        if self.log and self.high / self.low > 4:
            for steps in ((1, 2, 5), (1, 3), (1,)):
                values = [value for value in _decades(self.low, self.high, steps) if self.low <= value <= self.high]
                if len(values) <= most:
                    return values if len(values) > 2 else _round_values(self.low, self.high, most)
            return values[:: -(-len(values) // most)]
        return _round_values(self.low, self.high, most)


def _decades(low: float, high: float, steps: Sequence[int]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps]


def _round_values(low: float, high: float, most: int) -> list[float]:
    width = max(high - low, 1e-12)
    power = 10.0 ** math.floor(math.log10(width / most))
    step = next(digit * power for digit in (1, 2, 5, 10) if width / (digit * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def mark(tag: str, *inside: str, **attributes: Attribute) -> str:
    """One element. Attributes as SVG has them, with "_" for "-"; `fill` and `stroke` by the name of a paint, `kind` is
    what style sheets and tests know it by. What is None is left out.
    """
    classes = [str(attributes.pop("kind", None) or "")]
    for name, short in (("fill", "f"), ("stroke", "s")):
        if (paint := attributes.get(name)) in PAINTS:
            classes.append(f"{short}-{paint}")
            attributes[name] = PAINTS[str(paint)].light
    given = {"class": " ".join(filter(None, classes)) or None, **attributes}
    written = "".join(
        f' {name.replace("_", "-")}="{_value(value)}"' for name, value in given.items() if value is not None
    )
    return f"<{tag}{written}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{written}/>"


def _value(value: Attribute) -> str:
    """Places are written to a tenth, which is finer than the eye sees."""
    return f"{round(value, 1):g}" if isinstance(value, float) else escape(str(value))


def told(words: str) -> str:
    """What a mark says when it is pointed at."""
    return f"<title>{escape(words)}</title>"


def text(x: float, y: float, words: str, *, fill: str = INK, anchor: str | None = None, **attributes: Attribute) -> str:
    """A line of words; (x, y) is on its base line."""
    return mark("text", escape(words), fill=fill, x=x, y=y, text_anchor=anchor, **attributes)


def halo(x: float, y: float, words: str, *, under: str, anchor: str = "middle") -> str:
    """Words on a hatched ground, with a rim of its paint around each letter."""
    return mark(
        "text",
        escape(words),
        fill=INK,
        stroke=under,
        x=x,
        y=y,
        text_anchor=anchor,
        stroke_width=4,
        stroke_linejoin="round",
        paint_order="stroke",
    )


def heading(area: Area, y: float, name: str, value: str) -> list[str]:
    """Above a bar: what it is at the left, how much at the right. A name that would run into the value is shortened;
    the table has it whole.
    """
    room = int((area.right - area.left) / LETTER) - len(value) - 3
    shown = name if len(name) <= room else f"{name[: room - 1]}…"
    return [
        halo(area.left, y, shown, under=PAPER, anchor="start"),
        halo(area.right, y, value, under=PAPER, anchor="end"),
    ]


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Attribute) -> str:
    return mark("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def path(points: Iterable[tuple[float, float]], **attributes: Attribute) -> str:
    """A line through points."""
    return mark("polyline", fill="none", points=_points(points), **attributes)


def band(lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]], *, fill: str) -> str:
    """What lies between two lines."""
    return mark("polygon", fill=fill, kind="band", points=_points([*upper, *lower[::-1]]), fill_opacity="0.16")


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_value(float(x))},{_value(float(y))}" for x, y in points)


def box(x: float, y: float, width: float, height: float, *inside: str, **attributes: Attribute) -> str:
    return mark("rect", *inside, x=x, y=y, width=max(0.0, width), height=height, **attributes)


def dot(index: int, x: float, y: float, *inside: str, size: float = 4.5, **attributes: Attribute) -> str:
    """The marker of a series."""
    paint = series(index)
    shape = MARKERS[index % len(MARKERS)]
    if shape == "circle":
        return mark("circle", *inside, fill=paint, cx=x, cy=y, r=size, **attributes)
    if shape == "square":
        return box(x - size, y - size, 2 * size, 2 * size, *inside, fill=paint, **attributes)
    corners = {
        "triangle": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
        "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "wedge": ((0, 1.2), (1.1, -0.9), (-1.1, -0.9)),
        "cross": (
            (-1, -0.4),
            (-0.4, -0.4),
            (-0.4, -1),
            (0.4, -1),
            (0.4, -0.4),
            (1, -0.4),
            (1, 0.4),
            (0.4, 0.4),
            (0.4, 1),
            (-0.4, 1),
            (-0.4, 0.4),
            (-1, 0.4),
        ),
    }[shape]
    placed = [(x + size * right, y + size * down) for right, down in corners]
    return mark("polygon", *inside, fill=paint, points=_points(placed), **attributes)


HATCHES: Mapping[str, str] = {
    "data": "M2 2h1M6 6h1",
    "forward": "M-1 1l2 -2M0 8l8 -8M7 9l2 -2",
    "backward": "M-1 7l2 2M0 0l8 8M7 -1l2 2",
    "communication": "M0 8l8 -8M0 0l8 8",
    "update": "M0 2h8M0 6h8",
    "overhead": "M2 0v8M6 0v8",
    "other": "M1 4h2M5 4h2",
}
"""Phase → what is drawn into each tile of 8 by 8; phases without one are plain."""


def hatches(prefix: str, phases: Iterable[str]) -> list[str]:
    """The patterns of these phases; `prefix` sets the pictures of one page apart."""
    return [_hatch(prefix, phase) for phase in dict.fromkeys(map(known_phase, phases))]


def hatched(prefix: str, phase: str) -> str:
    """What is filled with the pattern of a phase."""
    return f"url(#{prefix}-{known_phase(phase)})"


def _hatch(prefix: str, phase: str) -> str:
    inside = [mark("rect", fill=ground(phase), width=8, height=8)]
    if phase in HATCHES:
        inside.append(mark("path", fill="none", stroke=edge(phase), d=HATCHES[phase], stroke_opacity="0.55"))
    return mark("pattern", *inside, id=f"{prefix}-{phase}", width=8, height=8, patternUnits="userSpaceOnUse")


def across(area: Area, scale: Scale, ticks: Mapping[float, str], title: str) -> list[str]:
    """The horizontal axis below an area: a line and a label for each tick, and what is counted."""
    parts = []
    for value, words in ticks.items():
        x = scale(value)
        parts.append(line(x, area.top, x, area.bottom, stroke=GRID))
        parts.append(text(x, area.bottom + 18, words, fill=SOFT, anchor=_within(x, words)))
    return [*parts, text((area.left + area.right) / 2, area.bottom + 38, title, fill=SOFT, anchor="middle")]


def _within(x: float, words: str) -> str:
    """How words are set around a place so that they stay on the paper."""
    half = LETTER * len(words) / 2
    return "start" if x < half else "end" if x > WIDTH - half else "middle"


def upward(area: Area, scale: Scale, ticks: Mapping[float, str], title: str) -> list[str]:
    """The vertical axis to the left of an area."""
    parts = []
    for value, words in ticks.items():
        y = scale(value)
        parts.append(line(area.left, y, area.right, y, stroke=GRID))
        parts.append(text(area.left - 8, y + 4, words, fill=SOFT, anchor="end"))
    return [*parts, text(area.left, area.top - 12, title, fill=SOFT)]


def apart(places: Sequence[float], gap: float) -> list[float]:
    """The same places, moved as little as need be for labels not to cover each other."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while len(groups) > 1 and _top(groups[-1], places, gap) < _top(groups[-2], places, gap) + gap * len(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    moved = list(places)
    for group in groups:
        top = _top(group, places, gap)
        for row, index in enumerate(group):
            moved[index] = top + gap * row
    return moved


def _top(group: Sequence[int], places: Sequence[float], gap: float) -> float:
    return sum(places[index] for index in group) / len(group) - gap * (len(group) - 1) / 2


def picture(label: str, height: float, parts: Iterable[str], *, patterns: Iterable[str] = ()) -> str:
    """Put all parts on a background; `label` is the description for screen readers."""
    defined = "".join(patterns)
    head = (
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        f'font-family="{FONT}" font-size="{SIZE}" role="img" aria-label="{escape(label)}">'
    )
    paper = mark("rect", fill=PAPER, kind="paper", width=WIDTH, height=height)
    return "\n".join([head, *([f"<defs>{defined}</defs>"] if defined else []), paper, *parts, "</svg>\n"])
