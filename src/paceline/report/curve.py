"""A scaling curve as a picture: throughput against workers on doubling axes, with its band and the ideal line. SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import log2

from paceline.model.predict import Prediction
from paceline.units import format_count

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 28, 56
COLOURS = ("#0b6e99", "#b5541c", "#3f7d20", "#7a3e9d", "#8a6d00", "#a3195b")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "1 4")
"""Curves are told apart without colour too."""


SVG = "http://www.w3.org/2000/svg"
STYLE = 'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Predicted throughput by workers"'


def scaling_svg(curves: Mapping[str, Sequence[Prediction]]) -> str:
    """A picture of predicted throughput; one curve a family."""
    points = [one for curve in curves.values() for one in curve]
    xs = [log2(one.conditions.workers) for one in points]
    ys = [log2(value) for one in points for value in (one.throughput.low, one.throughput.high)]
    ideals = {name: curve[0].throughput.value / curve[0].conditions.workers for name, curve in curves.items()}
    ys += [log2(ideals[name] * one.conditions.workers) for name, curve in curves.items() for one in curve]
    across = _Scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = _Scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="{SVG}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" {STYLE}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        *_axes(across, up, sorted({one.conditions.workers for one in points})),
    ]
    for index, (name, curve) in enumerate(curves.items()):
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        parts += _curve(name, curve, across, up, colour=colour, dash=dash, ideal=ideals[name], row=index)
    return "\n".join([*parts, "</svg>\n"])


class _Scale:
    """From a value to a place."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._width = low, max(high - low, 1e-9)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        return round(self._start + (value - self._low) / self._width * (self._end - self._start), 1)

    @property
    def ends(self) -> tuple[float, float]:
        return self._low, self._low + self._width


def _axes(across: _Scale, up: _Scale, workers: Sequence[int]) -> list[str]:
    base, left, right = HEIGHT - BOTTOM, LEFT, WIDTH - RIGHT
    parts = []
    for count in workers:
        x = across(log2(count))
        parts.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{base}" stroke="#e3e3e3"/>')
        parts.append(f'<text x="{x}" y="{base + 18}" text-anchor="middle" fill="#333">{count}</text>')
    low, high = up.ends
    for power in range(int(low), int(high) + 1):
        if low <= power <= high:
            y = up(power)
            parts.append(f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#e3e3e3"/>')
            parts.append(
                f'<text x="{left - 6}" y="{y + 4}" text-anchor="end" fill="#333">{format_count(2.0**power)}</text>'
            )
    parts.append(f'<text x="{(left + right) / 2}" y="{HEIGHT - 14}" text-anchor="middle" fill="#333">workers</text>')
    parts.append(f'<text x="{left}" y="{TOP - 10}" fill="#333">samples a second</text>')
    return parts


def _curve(
    name: str,
    curve: Sequence[Prediction],
    across: _Scale,
    up: _Scale,
    *,
    colour: str,
    dash: str,
    ideal: float,
    row: int,
) -> list[str]:
    def place(one: Prediction, value: float) -> str:
        return f"{across(log2(one.conditions.workers))},{up(log2(value))}"

    lows = [place(one, one.throughput.low) for one in curve]
    highs = [place(one, one.throughput.high) for one in curve]
    middle = [place(one, one.throughput.value) for one in curve]
    best = [place(one, ideal * one.conditions.workers) for one in curve]
    y = TOP + 16 + 18 * row
    stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
    return [
        f'<polyline points="{" ".join(best)}" fill="none" stroke="#999" stroke-dasharray="1 3"/>',
        f'<polygon points="{" ".join(highs + lows[::-1])}" fill="{colour}" fill-opacity="0.15"/>',
        f'<polyline points="{" ".join(middle)}" fill="none" {stroke}/>',
        *(f'<circle cx="{point.split(",")[0]}" cy="{point.split(",")[1]}" r="3" fill="{colour}"/>' for point in middle),
        f'<line x1="{LEFT + 12}" y1="{y - 4}" x2="{LEFT + 44}" y2="{y - 4}" {stroke}/>',
        f'<text x="{LEFT + 50}" y="{y}" fill="#333">{escape(name)} (predicted, 90 %; dotted: ideal)</text>',
    ]
