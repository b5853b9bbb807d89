"""Explanations in words: findings with their evidence, the loss by size, and what is not known."""

from __future__ import annotations

from paceline.explain.explanation import EfficiencyLoss, Explanation
from paceline.explain.finding import Finding, Number
from paceline.report import numbers
from paceline.units import format_bytes, format_count, format_seconds

LEAST_SHOWN = 0.005
"""Parts below half a percent are not worth a word."""


def evidence_line(finding: Finding) -> str:
    """Its share, what would be gained, how sure that is."""
    gain = finding.gain
    gained = ""
    if gain is not None:
        low, high = gain.interval
        gained = f"; without it × {gain.value:.3g} as fast ({low:.3g}–{high:.3g}, {numbers.level(gain.level)})"
    return f"{finding.cause}: {numbers.share(finding.share)} of the step, {finding.by}{gained}; {finding.sure}"


def number_text(number: Number) -> str:
    """A number of a finding as a person reads it."""
    if number.unit == "s":
        return format_seconds(number.value)
    if number.unit == "1":
        return f"{number.value * 100:.3g} %"
    if number.unit == "B":
        return format_bytes(number.value)
    if number.unit == "B/s":
        return f"{number.value / 1e6:.3g} MB/s"
    return f"{format_count(number.value)} {number.unit}".strip()


def loss_words(loss: EfficiencyLoss) -> tuple[str, list[str]]:
    """What is lost between two sizes, and by what, the most first."""
    parts = sorted(loss.parts.items(), key=lambda part: -part[1])
    heading = (
        f"From {loss.from_workers} to {loss.to_workers} workers, {1 - loss.efficiency:.0%} of the speed per worker is "
        f"lost ({loss.by})"
    )
    return heading, [f"{share:+.0%} {cause}" for cause, share in parts if abs(share) >= LEAST_SHOWN]


def further_sentences(explained: Explanation) -> list[str]:
    """What is lost by size, whether the step is normal, and what is not known."""
    lost = []
    if explained.loss:
        heading, parts = loss_words(explained.loss)
        lost = [f"{heading}; of that {', '.join(parts)}."]
    return [
        *lost,
        *(check.sentence for check in explained.yardsticks),
        *(f"Not known: {sentence}" for sentence in explained.unknown),
    ]
