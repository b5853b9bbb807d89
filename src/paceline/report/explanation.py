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
from paceline.report import numbers
from paceline.report.findings import LEAST_SHOWN, loss_words
from paceline.report.glyphs import MEASURED
from paceline.report.lists import items, wrap
from paceline.report.table import Column, draw
from paceline.stats.estimate import Estimate
from paceline.units import format_seconds

BAR = 24
"""Characters of a bar that is a whole step."""


def explanation_text(explained: Explanation, width: int) -> str:
    """One trial."""
    blocks = [
        f"{explained.label}: step {format_seconds(explained.step_s)}{' (simulated)' if explained.simulated else ''}",
        _shares(explained, width),
        "\n".join(_finding(number, finding, width) for number, finding in enumerate(explained.findings, start=1)),
        _ladder(explained, width),
        _loss(explained, width),
        items("Is this number normal?", [f"{check.name}: {check.sentence}" for check in explained.yardsticks], width),
        items("Not known", explained.unknown, width),
    ]
    return "\n\n".join(block for block in blocks if block)


def _shares(explained: Explanation, width: int) -> str:
    rows = [share for share in explained.shares if max(share.best, share.modelled) >= LEAST_SHOWN]
    names = Column(header="where the step time goes", cells=tuple(share.cause for share in rows), right=False)
    return draw(
        names,
        [
            Column(
                header="", cells=tuple((MEASURED * round(share.best * BAR)).ljust(BAR) for share in rows), right=False
            ),
            Column(
                header="simulated" if explained.simulated else "measured",
                cells=tuple(_part(share.measured) for share in rows),
            ),
            Column(header="modelled", cells=tuple(_part(share.modelled) for share in rows)),
        ],
        width,
    )


def _part(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.1f} %"


def _finding(number: int, finding: Finding, width: int) -> str:
    lines = [wrap(f"{finding.sentence}.", width, first=f"{number}. ", rest="   ")]
    without = f"without it the step would be {factor(finding.gain)} as fast; " if finding.gain else ""
    lines.append(wrap(f"{without}{finding.sure}", width, first="   ", rest="   "))
    if finding.change:
        expected = f" (expected: {factor(finding.change.gain)} the throughput)" if finding.change.gain else ""
        lines.append(wrap(f"Do: {finding.change.words}{expected}", width, first="   ", rest="   "))
    return "\n".join(lines)


def factor(gain: Estimate) -> str:
    """E.g. "1.42 × (1.30–1.55, 90 %)"."""
    low, high = gain.interval
    return f"{gain.value:.2f} × ({low:.2f}–{high:.2f}, {numbers.level(gain.level)})"


def _ladder(explained: Explanation, width: int) -> str:
    lines = [
        f"{'if' if number == 0 else 'then, if'} {rung.cause} took no time: {format_seconds(rung.step_s)}, "
        f"{rung.faster:.2f} × as fast as now"
        for number, rung in enumerate(explained.ladder)
    ]
    return items("One bottleneck after the other (modelled)", lines, width)


def _loss(explained: Explanation, width: int) -> str:
    if explained.loss is None:
        return ""
    heading, parts = loss_words(explained.loss)
    return items(f"{heading}; of that", parts, width)


def gap_text(gaps: Sequence[Gap], width: int) -> str:
    """Why one trial is slower than another; "" where no two differ."""
    lines = []
    for gap in gaps:
        parts = sorted(gap.parts.items(), key=lambda part: -part[1])
        split = ", ".join(f"{part:+.0%} {cause}" for cause, part in parts if abs(part) >= LEAST_SHOWN)
        layers = ", ".join(
            f"{layer.layer} {format_seconds(layer.slower_s)} against {format_seconds(layer.faster_s)}"
            for layer in gap.layers
        )
        lines.append(
            f"{gap.sentence}. Full breakdown ({gap.by}): {split}{f'. Layers, forward: {layers}' if layers else ''}"
        )
    return items("Why one trial is slower than another", lines, width)


def change_point_text(changes: Sequence[ChangePoint], width: int) -> str:
    """Trials that became slower or faster at some moment."""
    lines = []
    for change in changes:
        when = datetime.fromtimestamp(change.started, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        what = "; ".join(f"{name}: {before} → {after}" for name, (before, after) in change.changed.items())
        how = f"{abs(change.ratio - 1):.1%} {'slower' if change.slower else 'faster'}"
        lines.append(
            f"{change.trial}: {how} since {when} (p={change.p:.2g}, {change.before} runs before, {change.after} after; "
            f"first: {change.first_after})"
            f"{f'; what changed there: {what}' if what else '; tool, environment and kernel are the same'}"
        )
    return items("Changes", lines, width) or "no change beyond chance"
