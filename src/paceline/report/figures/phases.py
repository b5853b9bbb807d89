"""The phases of a step as one bar per row, with all rows of a model on one axis.

Phases are hatched, so the figure can be read without colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import Comparison, Phase, Row
from paceline.record.phases import FUSED, in_order
from paceline.report import numbers
from paceline.report.figures.figure import Figure, names_for
from paceline.report.palette import edge, ground
from paceline.report.phases import HOW, HOW_DERIVED
from paceline.report.sheet import Line, Sheet, fields, measured, number, word
from paceline.report.svg import (
    LETTER,
    WIDTH,
    Area,
    Scale,
    across,
    box,
    halo,
    hatched,
    hatches,
    heading,
    picture,
    text,
    told,
)
from paceline.units import format_seconds

ROW, BAR, TOP, BOTTOM, SIDE, LEGEND = 46, 22, 34, 52, 6, 22
OTHER = "other"
DASHED = "3 2"
"""The border of what was derived."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One piece of a bar."""

    phase: str
    seconds: float
    by: str
    derived: bool = False
    source: Phase | None = None
    """The number behind it; None: what no phase accounts for."""


def phase_figures(comparison: Comparison) -> list[Figure]:
    """One figure per model."""
    groups: dict[str, list[Row]] = {}
    for row in comparison.rows:
        if row.phases and row.step_s is not None:
            groups.setdefault(row.workload, []).append(row)
    names = names_for("phases", list(groups))
    return [_figure(name, model, rows) for name, (model, rows) in zip(names, groups.items(), strict=True)]


def parts_of(row: Row) -> list[Part]:
    """A step from its begin to its end; a fused one by what was derived of it, where that is known."""
    whole = numbers.known(row.step_s).value
    parts = []
    for name, phase in row.phases.items():
        if name == FUSED and row.phases_derived:
            parts += _inside(row.phases_derived, phase.time.value)
        else:
            parts.append(Part(phase=name, seconds=phase.time.value, by=HOW[phase.by], source=phase))
    rest = whole - sum(part.seconds for part in parts)
    return [*parts, *([Part(phase=OTHER, seconds=rest, by="no timer")] if rest > 0.005 * whole else [])]


def _inside(derived: Mapping[str, Phase], fused: float) -> list[Part]:
    parts = [
        Part(
            phase=name,
            seconds=max(0.0, phase.time.value),
            by=HOW_DERIVED[phase.by],
            derived=True,
            source=phase,
        )
        for name, phase in derived.items()
    ]
    total = sum(part.seconds for part in parts)
    # Operators of a profile need not add up to the step; what is left is called by the name of the whole.
    rest = [Part(phase=FUSED, seconds=fused - total, by="the rest of it")] if total < 0.995 * fused else []
    return [*parts, *rest]


def _figure(name: str, model: str, rows: Sequence[Row]) -> Figure:
    bars = {row.key: parts_of(row) for row in rows}
    seen = {part.phase for parts in bars.values() for part in parts}
    phases = [*in_order(seen - {OTHER}), *([OTHER] if OTHER in seen else [])]
    key, deep = legend(name, phases)
    height = deep + ROW * len(rows) + BOTTOM
    area = Area(left=SIDE, top=deep, right=WIDTH - SIDE, bottom=height - BOTTOM)
    longest = max(sum(part.seconds for part in parts) for parts in bars.values())
    scale = Scale(0.0, longest * 1.01, area.left, area.right)
    drawn = across(
        area, scale, {value: format_seconds(value) if value else "0" for value in scale.ticks()}, "step time"
    )
    for place, row in enumerate(rows):
        drawn += _bar(name, row, bars[row.key], area.top + ROW * place, scale, area)
    dashed = " A dashed border: derived, not timed." if any(p.derived for parts in bars.values() for p in parts) else ""
    return Figure(
        name=name,
        title=model,
        caption=f"Means over runs, ranks and steps; bars are as long as the step.{dashed}",
        svg=picture(
            f"Phases of a step, {model}, one bar per trial", height, [*key, *drawn], patterns=hatches(name, phases)
        ),
        sheet=_sheet(rows, bars),
    )


def legend(name: str, phases: Sequence[str]) -> tuple[list[str], float]:
    """What each hatch stands for, in as many lines as it takes; and where the lines end."""
    parts, x, y = [], float(SIDE), 8.0
    for phase in phases:
        width = 24 + LETTER * len(phase) + 18
        if x + width > WIDTH - SIDE:
            x, y = float(SIDE), y + LEGEND
        parts.append(box(x, y, 16.0, 12.0, fill=hatched(name, phase), stroke=edge(phase)))
        parts.append(text(x + 22, y + 11, phase))
        x += width
    return parts, y + TOP


def _bar(name: str, row: Row, parts: Sequence[Part], top: float, scale: Scale, area: Area) -> list[str]:
    whole = numbers.known(row.step_s)
    drawn = heading(area, top + 13, row.label, numbers.seconds(whole))
    begin = 0.0
    for part in parts:
        left, right = scale(begin), scale(begin + part.seconds)
        begin += part.seconds
        share = numbers.share(part.seconds / whole.value)
        how = "derived by" if part.derived else "by"
        words = f"{row.label}: {part.phase} {format_seconds(part.seconds)}, {share}, {how} {part.by}"
        drawn.append(
            box(
                left,
                top + 19,
                right - left,
                float(BAR),
                told(words),
                fill=hatched(name, part.phase),
                stroke=edge(part.phase),
                kind="mark",
                stroke_dasharray=DASHED if part.derived else None,
                data_row=row.key,
                data_phase=part.phase,
                data_value=repr(part.seconds),
            )
        )
        if right - left > LETTER * len(share) + 10:
            drawn.append(halo((left + right) / 2, top + 19 + BAR / 2 + 4.5, share, under=ground(part.phase)))
    return drawn


def _sheet(rows: Sequence[Row], bars: Mapping[str, Sequence[Part]]) -> Sheet:
    lines = []
    for row in rows:
        whole = numbers.known(row.step_s).value
        for part in bars[row.key]:
            time = part.source.time if part.source else None
            shown = (
                measured(time, numbers.seconds(time)) if time else number(part.seconds, format_seconds(part.seconds))
            )
            if part.source and part.derived and part.source.below_noise:
                shown = number(part.source.time.value, "≈ 0 (below noise)")
            lines.append(
                Line(
                    key=row.key,
                    cells=(
                        word(row.label),
                        word(part.phase),
                        shown,
                        number(part.seconds / whole, numbers.share(part.seconds / whole)),
                        word(f"derived by {part.by}" if part.derived else part.by),
                    ),
                )
            )
    return Sheet(
        caption="Phases of a step with 95 % intervals",
        fields=fields(label="trial", phase="phase", seconds="per step", share="share", by="by"),
        lines=tuple(lines),
    )
