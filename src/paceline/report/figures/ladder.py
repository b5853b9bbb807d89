"""The bottleneck ladder: how long a step would be if one resource after the other were infinitely fast."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.explain.explanation import Explanation
from paceline.report.figures.figure import Figure, names_for
from paceline.report.palette import GRID
from paceline.report.sheet import Line, Sheet, fields, number, word
from paceline.report.svg import WIDTH, Area, Scale, across, box, heading, picture, series, told
from paceline.units import format_seconds

ROW, BAR, TOP, BOTTOM, SIDE = 42, 14, 10, 52, 6
HOW_TO_READ = (
    "Modelled. Each rung removes one cause and all causes above it: the next bottleneck is the cause of the next rung."
)
AS_IT_IS = "as it is"


def ladder_figures(explanations: Sequence[Explanation]) -> dict[str, Figure]:
    """Trial → its figure, for each that has a ladder."""
    laddered = [explained for explained in explanations if explained.ladder]
    names = names_for("ladder", [explained.label for explained in laddered])
    return {explained.trial: _figure(name, explained) for name, explained in zip(names, laddered, strict=True)}


def _figure(name: str, explained: Explanation) -> Figure:
    whole = explained.ladder[0].step_s * explained.ladder[0].faster
    rungs = [(AS_IT_IS, whole, 1.0), *((rung.cause, rung.step_s, rung.faster) for rung in explained.ladder)]
    height = TOP + ROW * len(rungs) + BOTTOM
    area = Area(left=SIDE, top=TOP, right=WIDTH - SIDE, bottom=height - BOTTOM)
    scale = Scale(0.0, max(step for _, step, _ in rungs) * 1.01, area.left, area.right)
    parts = across(
        area, scale, {value: format_seconds(value) if value else "0" for value in scale.ticks()}, "step time"
    )
    for place, (cause, step, faster) in enumerate(rungs):
        top = area.top + ROW * place
        words = cause if cause == AS_IT_IS else f"{'and ' if place > 1 else ''}no {cause}"
        value = format_seconds(step) if cause == AS_IT_IS else f"{format_seconds(step)}, × {faster:.3g} as fast"
        parts += [
            *heading(area, top + 13, words, value),
            box(area.left, top + 19, area.right - area.left, float(BAR), fill=GRID),
            box(
                area.left,
                top + 19,
                scale(step) - area.left,
                float(BAR),
                told(f"{words}: {value}"),
                fill=series(0),
                kind="mark",
                data_row=explained.trial,
                data_value=repr(step),
            ),
        ]
    return Figure(
        name=name,
        title="If one resource after the other were infinitely fast",
        caption=HOW_TO_READ,
        svg=picture(
            f"Bottleneck ladder of {explained.label}: a step as it is, then without one cause after the other",
            height,
            parts,
        ),
        sheet=Sheet(
            caption="Step time without this cause and all causes above it",
            fields=fields(cause="without", step_without_s="step time", faster="times as fast"),
            lines=tuple(
                Line(
                    key=explained.trial,
                    cells=(
                        word("nothing" if cause == AS_IT_IS else cause),
                        number(step, format_seconds(step)),
                        number(faster, f"{faster:.3g}"),
                    ),
                )
                for cause, step, faster in rungs
            ),
        ),
    )
