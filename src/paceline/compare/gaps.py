"""What lies behind a difference: the part of the step that makes most of it, and in what the two rows differ.

Pure. The part is measured or derived, and says so; that a differing trait is the cause is not shown, only that it
concerns that part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.compare.rows import Phase, Row
from paceline.record.phases import COMMUNICATION, FUSED

CONCERNS = {
    COMMUNICATION: ("wrapped",),
    "data": (),
    "update": ("compiled", "wrapped"),
}
"""Part of the step → traits that bear on it; all other parts compute."""
COMPUTING = ("layout", "blas", "compiled", "precision")


@dataclass(frozen=True, kw_only=True, slots=True)
class Factor:
    """The largest part of the gap between two rows."""

    phase: str
    """Part of the step."""
    seconds: float
    """By which the slower row spends more time in it, a step."""
    share: float
    """Of the whole gap; above 1 where another part goes the other way."""
    derived: bool
    """Whether a derived number is in it."""
    differing: tuple[str, ...] = ()
    """Knobs and traits that bear on it, in which the two differ: "layout: nhwc | nchw"."""

    def to_json(self) -> dict[str, Any]:
        return {
            "phase": self.phase, "seconds": self.seconds, "share": self.share, "derived": self.derived,
            "differing": list(self.differing),
        }  # fmt: skip


def factor_behind(
    faster: Row, slower: Row, faster_traits: Mapping[str, str], slower_traits: Mapping[str, str]
) -> Factor | None:
    """The largest factor, or None where one of the rows does not tell the parts of its step."""
    if faster.step_s is None or slower.step_s is None:
        return None
    ours, theirs = _parts(faster), _parts(slower)
    gap = slower.step_s.value - faster.step_s.value
    if not ours or not theirs or gap <= 0:
        return None
    more = {name: _seconds(theirs.get(name)) - _seconds(ours.get(name)) for name in dict.fromkeys((*ours, *theirs))}
    phase = max(more, key=lambda name: more[name])
    return Factor(
        phase=phase,
        seconds=more[phase],
        share=more[phase] / gap,
        derived=phase in faster.phases_derived or phase in slower.phases_derived,
        differing=_differing(phase, faster, slower, faster_traits, slower_traits),
    )


def _parts(row: Row) -> dict[str, Phase]:
    """The finest parts that are known; {} where all that is known is the whole."""
    if FUSED not in row.phases:
        return dict(row.phases)
    if not row.phases_derived:
        return {}
    return {name: phase for name, phase in row.phases.items() if name != FUSED} | dict(row.phases_derived)


def _seconds(phase: Phase | None) -> float:
    return 0.0 if phase is None else max(0.0, phase.time.value)


def _differing(
    phase: str, faster: Row, slower: Row, faster_traits: Mapping[str, str], slower_traits: Mapping[str, str]
) -> tuple[str, ...]:
    if faster.framework == slower.framework:
        pairs = {name: (value, slower.knobs.get(name)) for name, value in faster.knobs.items()}
        pairs["strategy"] = (faster.strategy, slower.strategy)
        pairs["threads"] = (faster.threads_per_worker, slower.threads_per_worker)
    else:
        wanted = CONCERNS.get(phase, COMPUTING)
        pairs = {name: (faster_traits.get(name), slower_traits.get(name)) for name in wanted}
    return tuple(f"{name}: {a} | {b}" for name, (a, b) in pairs.items() if a != b)
