"""Explanations as text: where the step time goes, what holds it back, what would help.

It formats finished numbers and computes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from paceline.explain.explanation import Explanation
from paceline.explain.finding import Finding
from paceline.explain.gap import Gap
from paceline.explain.regression import ChangePoint
from paceline.report.findings import LEAST_SHOWN, loss_words
from paceline.report.glyphs import MEASURED
from paceline.report.lists import items, wrap
from paceline.report.table import Column, draw
from paceline.stats.estimate import Estimate
from paceline.units import format_seconds

BAR = 24
"""Characters of a bar that is a whole step."""


def explanation_text(found: Explanation, width: int) -> str:
    """One trial."""
    blocks = [
        f"{found.label}: step {format_seconds(found.step_s)}{' (simulated)' if found.simulated else ''}",
        _shares(found, width),
        "\n".join(_finding(number, one, width) for number, one in enumerate(found.findings, start=1)),
        _ladder(found, width),
        _loss(found, width),
        items("Is this number normal?", [f"{one.name}: {one.sentence}" for one in found.yardsticks], width),
        items("Not known", found.unknown, width),
    ]
    return "\n\n".join(block for block in blocks if block)


def _shares(found: Explanation, width: int) -> str:
    rows = [one for one in found.shares if max(one.best, one.modelled) >= LEAST_SHOWN]
    names = Column(header="where the step time goes", cells=tuple(one.cause for one in rows), right=False)
    return draw(
        names,
        [
            Column(header="", cells=tuple((MEASURED * round(one.best * BAR)).ljust(BAR) for one in rows), right=False),
            Column(
                header="simulated" if found.simulated else "measured", cells=tuple(_part(one.measured) for one in rows)
            ),
            Column(header="modelled", cells=tuple(_part(one.modelled) for one in rows)),
        ],
        width,
    )


def _part(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.1f} %"


def _finding(number: int, one: Finding, width: int) -> str:
    lines = [wrap(f"{one.sentence}.", width, first=f"{number}. ", rest="   ")]
    without = f"without it the step would be {factor(one.gain)} as fast; " if one.gain else ""
    lines.append(wrap(f"{without}{one.sure}", width, first="   ", rest="   "))
    if one.change:
        expected = f" (expected: {factor(one.change.gain)} the throughput)" if one.change.gain else ""
        lines.append(wrap(f"Do: {one.change.words}{expected}", width, first="   ", rest="   "))
    return "\n".join(lines)


def factor(gain: Estimate) -> str:
    """E.g. "1.42 × (1.30–1.55)"."""
    return "{:.2f} × ({:.2f}–{:.2f})".format(gain.value, *gain.interval)


def _ladder(found: Explanation, width: int) -> str:
    lines = [
        f"{'if' if number == 0 else 'then, if'} {rung.cause} took no time: {format_seconds(rung.step_s)}, "
        f"{rung.faster:.2f} × as fast as now"
        for number, rung in enumerate(found.ladder)
    ]
    return items("One bottleneck after the other (modelled)", lines, width)


def _loss(found: Explanation, width: int) -> str:
    if found.loss is None:
        return ""
    heading, parts = loss_words(found.loss)
    return items(f"{heading}; of that", parts, width)


def gap_text(gaps: Sequence[Gap], width: int) -> str:
    """Why one trial is slower than another; "" where no two differ."""
    lines = []
    for one in gaps:
        parts = sorted(one.parts.items(), key=lambda part: -part[1])
        split = ", ".join(f"{part:+.0%} {cause}" for cause, part in parts if abs(part) >= LEAST_SHOWN)
        layers = ", ".join(
            f"{layer.layer} {format_seconds(layer.slower_s)} against {format_seconds(layer.faster_s)}"
            for layer in one.layers
        )
        lines.append(
            f"{one.sentence}. Full breakdown ({one.by}): {split}{f'. Layers, forward: {layers}' if layers else ''}"
        )
    return items("Why one trial is slower than another", lines, width)


def change_point_text(found: Sequence[ChangePoint], width: int) -> str:
    """Trials that became slower or faster at some moment."""
    lines = []
    for one in found:
        when = datetime.fromtimestamp(one.started, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        what = "; ".join(f"{name}: {before} → {after}" for name, (before, after) in one.changed.items())
        how = f"{abs(one.ratio - 1):.1%} {'slower' if one.slower else 'faster'}"
        lines.append(
            f"{one.trial}: {how} since {when} (p={one.p:.2g}, {one.before} runs before, {one.after} after; first: "
            f"{one.first_after})"
            f"{f'; what changed there: {what}' if what else '; tool, environment and kernel are the same'}"
        )
    return items("Changes", lines, width) or "no change beyond chance"
