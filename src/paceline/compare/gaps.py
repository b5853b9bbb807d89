"""Finds the phase that causes most of a difference between two rows, and the properties in which the rows differ.

Pure. The time of the phase is measured or derived, and says which. A property that differs is not shown to be the
cause; it only concerns that phase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.compare.rows import Phase, Row
from paceline.record.phases import COMMUNICATION, FUSED, in_order

CONCERNS = {
    COMMUNICATION: ("wrapped",),
    "data": (),
    "update": ("compiled", "wrapped"),
}
"""Phase → the properties that concern it. All other phases compute."""
COMPUTING = ("layout", "blas", "compiled", "precision")


@dataclass(frozen=True, kw_only=True, slots=True)
class Factor:
    """The phase that causes most of the difference between two rows."""

    phase: str
    """The phase. Phases that one of the rows cannot separate count as one: "communication and update together"."""
    seconds: float
    """The additional time per step that the slower row spends in it."""
    share: float
    """The share of the whole difference; above 1 if another phase has the opposite sign."""
    derived: bool
    """Whether it contains a derived time."""
    differing: tuple[str, ...] = ()
    """The knobs and properties that concern it and differ, e.g. "layout: nhwc | nchw"."""

    def to_json(self) -> dict[str, object]:
        return {
            "phase": self.phase,
            "seconds": self.seconds,
            "share": self.share,
            "derived": self.derived,
            "differing": list(self.differing),
        }


def factor_behind(
    faster: Row, slower: Row, faster_traits: Mapping[str, str], slower_traits: Mapping[str, str]
) -> Factor | None:
    """Returns the phase that causes most of the difference; None if the phases of one of the rows are unknown."""
    if faster.step_s is None or slower.step_s is None:
        return None
    faster_parts, slower_parts = _parts(faster), _parts(slower)
    gap = slower.step_s.value - faster.step_s.value
    if not faster_parts or not slower_parts or gap <= 0:
        return None
    more = {
        name: _seconds(slower_parts.get(name)) - _seconds(faster_parts.get(name))
        for name in dict.fromkeys((*faster_parts, *slower_parts))
    }
    mixed = in_order(name for row in (faster, slower) if row.phases_mixed for name in row.phases_mixed.phases)
    summed = {phases: sum(more[name] for name in phases if name in more) for phases in _groups(more, mixed)}
    phases = max(summed, key=lambda group: summed[group])
    return Factor(
        phase=together(phases),
        seconds=summed[phases],
        share=summed[phases] / gap,
        derived=any(name in faster.phases_derived or name in slower.phases_derived for name in phases),
        differing=_differing(phases, faster, slower, faster_traits, slower_traits),
    )


def together(phases: Sequence[str]) -> str:
    """Returns the name of one phase, or of several as "communication and update together"."""
    *others, last = phases
    return f"{', '.join(others)} and {last} together" if others else last


def _groups(names: Iterable[str], mixed: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Returns each separable phase alone, and the others as one group: all mixtures include communication."""
    groups: list[tuple[str, ...]] = [(name,) for name in names if name not in mixed]
    return [*groups, mixed] if mixed else groups


def _parts(row: Row) -> dict[str, Phase]:
    """Returns the finest phases that are known; {} if only the whole step is known."""
    if FUSED not in row.phases:
        return dict(row.phases)
    if not row.phases_derived:
        return {}
    return {name: phase for name, phase in row.phases.items() if name != FUSED} | dict(row.phases_derived)


def _seconds(phase: Phase | None) -> float:
    return 0.0 if phase is None else max(0.0, phase.time.value)


def _differing(
    phases: Sequence[str], faster: Row, slower: Row, faster_traits: Mapping[str, str], slower_traits: Mapping[str, str]
) -> tuple[str, ...]:
    if faster.framework == slower.framework:
        pairs = {name: (value, slower.knobs.get(name)) for name, value in faster.knobs.items()}
        pairs["strategy"] = (faster.strategy, slower.strategy)
        pairs["threads"] = (faster.threads_per_worker, slower.threads_per_worker)
    else:
        wanted = dict.fromkeys(name for phase in phases for name in CONCERNS.get(phase, COMPUTING))
        pairs = {name: (faster_traits.get(name), slower_traits.get(name)) for name in wanted}
    return tuple(f"{name}: {a} | {b}" for name, (a, b) in pairs.items() if a != b)
