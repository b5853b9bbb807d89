"""The phases of a step in one run, each with the source of its time.

Measured phases are columns of the samples: read from clocks ("timers") or simulated ("law"). A framework that fuses its
step has one phase "step" that timers cannot divide; its adapter may derive the phases inside and report them as the
rank fact `phases_derived`. Derived times are kept apart from measured ones. Pure.
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
"""The phase in which ranks exchange data and wait for each other: exposed communication, not hidden by computing."""
FUSED = "step"
"""The phase of a compiled step as a whole; derived phases are parts of it."""
ORDER = ("data", "forward", "backward", COMMUNICATION, "update", "overhead")
"""The order of the phases in a step, which stored facts do not keep."""

Floats: TypeAlias = "npt.NDArray[np.float64]"


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseTime:
    """The time of one phase."""

    seconds: float
    """The seconds per step, as a mean over ranks and steps; a derived time may be negative."""
    share: float
    """The share of the mean step."""
    by: PhasesBy
    """The source: "timers" or "law" for a measured phase, one of DERIVED_BY for a derived one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """Phases of a run that cannot be separated: the time of one contains a part of another."""

    phases: tuple[str, ...]
    """The phases in the order of the step; one of them may have no time of its own."""
    why: str
    """The reason, in words."""

    def to_json(self) -> dict[str, object]:
        return {"phases": list(self.phases), "why": self.why}


def measured_phases(columns: Mapping[str, Floats], step_s: float, by: PhasesBy) -> dict[str, PhaseTime]:
    """Returns the mean times of the phases of the samples, in the order of the step."""
    means = {name: float(seconds.mean()) for name, seconds in columns.items()}
    return {name: PhaseTime(seconds=mean, share=mean / step_s, by=by) for name, mean in means.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """The phases of a fused step as the ranks derived them, as means over ranks."""

    by: DerivedBy
    seconds: Mapping[str, float]
    """Phase → seconds per step."""
    step_s: float | None
    """The duration of the whole fused step when its phases were derived; None if it is unknown."""

    def fit(self, measured: Mapping[str, PhaseTime], step_s: float) -> dict[str, PhaseTime]:
        """Returns the derived phases, scaled so that the fused step is as long as it was measured."""
        scale = self.scale(measured) or 1.0
        fitted = {name: seconds * scale for name, seconds in self.seconds.items() if name not in measured}
        return {
            name: PhaseTime(seconds=seconds, share=seconds / step_s, by=self.by) for name, seconds in fitted.items()
        }

    def scale(self, measured: Mapping[str, PhaseTime]) -> float | None:
        """Returns measured ÷ derived duration of the fused step; None if one of them is unknown."""
        if FUSED not in measured or not self.step_s:
            return None
        return measured[FUSED].seconds / self.step_s


def derived_of(ranks: Sequence[Rank]) -> Derived | None:
    """Returns the phases that the ranks derived; None if no rank reported any that can be read."""
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
    """Returns the phases that the first rank reports as inseparable; None if no rank does."""
    for rank in ranks:
        if mixed := rank.reported.phases_mixed:
            return Mixed(phases=in_order(mixed.phases), why=mixed.why)
    return None


def in_order(phases: Iterable[str]) -> tuple[str, ...]:
    """Returns each phase once, in the order of a step."""
    return tuple(sorted(set(phases), key=_place))


def split_communication(matrix: Floats) -> tuple[float, float]:
    """Returns (transfer, waiting) in seconds per step.

    Args:
        matrix: the communication phase, with one row per rank and one column per step.
    """
    # The last rank to arrive waits for nobody, so its communication phase is the transfer alone.
    transfer = float(matrix.min(axis=0).mean())
    return transfer, max(0.0, float(matrix.mean()) - transfer)


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
