"""The parts of a step in one run, each number with where it comes from.

Measured phases are columns of the samples: read from clocks ("timers") or given by a law ("law"). A framework that
fuses its step has a phase "step" that no timer can look into; its adapter may derive what is inside and report it as
the rank fact `phases_derived`. Derived numbers are never put among the measured ones. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.plan.vocabulary import PhasesBy
from paceline.record.fact import DerivedBy
from paceline.record.record import Rank

COMMUNICATION = "communication"
"""The phase in which ranks exchange and wait for each other: exposed, not hidden behind computing."""
FUSED = "step"
"""The phase that holds all that a compiled step does; what is derived are parts of it."""
ORDER = ("data", "forward", "backward", COMMUNICATION, "update", "overhead")
"""Of a step; stored facts do not keep one."""

Floats: TypeAlias = "npt.NDArray[np.float64]"


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseTime:
    """One part of the step."""

    seconds: float
    """A step, mean over ranks and steps; a derived one may come out below zero."""
    share: float
    """Of the mean step."""
    by: PhasesBy
    """Where it comes from: "timers" or "law" of a measured phase, one of DERIVED_BY of a derived one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """Phases of a run that cannot be told apart: what is said to be one contains some of another."""

    phases: tuple[str, ...]
    """In the order of the step; one of them may have no time of its own."""
    why: str
    """In words."""

    def to_json(self) -> dict[str, object]:
        return {"phases": list(self.phases), "why": self.why}


def measured_phases(columns: Mapping[str, Floats], step_s: float, by: PhasesBy) -> dict[str, PhaseTime]:
    """Means of the samples' phases, in the order of the step."""
    means = {name: float(seconds.mean()) for name, seconds in columns.items()}
    return {name: PhaseTime(seconds=mean, share=mean / step_s, by=by) for name, mean in means.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """What the ranks say is inside their fused step, as they say it: mean over ranks."""

    by: DerivedBy
    seconds: Mapping[str, float]
    """Phase → seconds per step."""
    step_s: float | None
    """The whole fused step at the time of deriving; None: not known."""

    def fit(self, measured: Mapping[str, PhaseTime], step_s: float) -> dict[str, PhaseTime]:
        """On the scale of the measured steps: the whole as long as the measured fused phase."""
        scale = self.scale(measured) or 1.0
        fitted = {name: seconds * scale for name, seconds in self.seconds.items() if name not in measured}
        return {
            name: PhaseTime(seconds=seconds, share=seconds / step_s, by=self.by) for name, seconds in fitted.items()
        }

    def scale(self, measured: Mapping[str, PhaseTime]) -> float | None:
        """Measured fused phase over the one that was derived from; None where one of them is not known."""
        if FUSED not in measured or not self.step_s:
            return None
        return measured[FUSED].seconds / self.step_s


def derived_of(ranks: Sequence[Rank]) -> Derived | None:
    """What the ranks derived; None where no rank did, or none in a form that can be read."""
    facts = [fact for rank in ranks if (fact := rank.reported.phases_derived) is not None]
    if not facts:
        return None
    names = sorted({name for fact in facts for name in fact.seconds}, key=_place)
    wholes = [fact.step_s for fact in facts if fact.step_s is not None]
    return Derived(
        by=facts[0].by,
        seconds={name: _mean([fact.seconds[name] for fact in facts if name in fact.seconds]) for name in names},
        step_s=_mean(wholes) if wholes else None,
    )


def mixed_of(ranks: Sequence[Rank]) -> Mixed | None:
    """What the first rank that says so cannot tell apart; None where all can."""
    for rank in ranks:
        if mixed := rank.reported.phases_mixed:
            return Mixed(phases=in_order(mixed.phases), why=mixed.why)
    return None


def in_order(phases: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order of a step."""
    return tuple(sorted(set(phases), key=_place))


def split_communication(matrix: Floats) -> tuple[float, float]:
    """(transfer, waiting) per step from the communication phase, one row per rank and one column per step."""
    # Everyone is there once the last rank arrives, so the last one sees the exchange without any waiting.
    transfer = float(matrix.min(axis=0).mean())
    return transfer, max(0.0, float(matrix.mean()) - transfer)


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
