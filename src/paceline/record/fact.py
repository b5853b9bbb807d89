"""How one reported fact is described and read: a descriptor with its reader, unit and meaning, and the readers.

Reported values are foreign data: a value that cannot be read as the type of the fact counts as not reported. The facts
themselves are listed in `facts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypedDict, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)
Use = Literal["stages", "proof", "kept"]
"""Who reads a fact: the stages after the record, only the fairness proof, or only people who look at the record."""


class Reported(Protocol):
    """A set of stored facts."""

    @property
    def stored(self) -> Mapping[str, object]: ...


class Fact(Generic[T_co]):
    """One fact. Its value is read from the stored facts at each access; None if it is missing or unreadable."""

    def __init__(
        self,
        read: Callable[[object], T_co | None],
        meaning: str,
        *,
        unit: str = "",
        use: Use = "stages",
        formerly: str = "",
        by_host: bool = False,
    ) -> None:
        """Describes a fact.

        Args:
            read: converts the stored value to the type of the fact.
            meaning: one sentence for the protocol page.
            unit: the unit of a number; "" if it has none.
            use: who reads the fact.
            formerly: the key that earlier workers used; records with that key are still understood.
            by_host: whether the host adds the fact to those that the rank sends.
        """
        self.read = read
        self.meaning = meaning
        self.unit = unit
        self.use = use
        self.formerly = formerly
        self.by_host = by_host
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Fact[T_co]: ...
    @overload
    def __get__(self, instance: Reported, owner: type) -> T_co | None: ...
    def __get__(self, instance: Reported | None, owner: type) -> Fact[T_co] | T_co | None:
        if instance is None:
            return self
        value = instance.stored.get(self.name)
        if value is None and self.formerly:
            value = instance.stored.get(self.formerly)
        return None if value is None else self.read(value)


def facts_of(owner: type) -> list[Fact[object]]:
    """Returns all facts that a class describes, in the order of its source."""
    return [value for value in vars(owner).values() if isinstance(value, Fact)]


def number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None  # type: ignore[arg-type]  # is_number says so


def whole(value: object) -> int | None:
    read = number(value)
    return None if read is None or not read.is_integer() else int(read)


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def text_or_flag(value: object) -> str | bool | None:
    return value if isinstance(value, (str, bool)) else None


def numbers(value: object) -> tuple[float, ...] | None:
    """Returns a list of numbers. They may be infinite or NaN, as the loss of a training that diverged."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, (int, float)) for item in value):
        return None
    return tuple(map(float, value))


def rows(value: object) -> tuple[tuple[float, ...], ...] | None:
    """Returns a list of lists of numbers."""
    if not isinstance(value, (list, tuple)):
        return None
    read = [numbers(item) for item in value]
    return tuple(item for item in read if item is not None) if None not in read else None


def texts(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else None


def mapping(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, Mapping) else None


def section(facts: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Returns the facts that are grouped under a name; {} if there are none."""
    return mapping(facts.get(name)) or {}


class TensorEvidence(TypedDict):
    """What a proof run reports about one tensor."""

    norm: float
    sketch: Sequence[float]
    """The products of the tensor with fixed random vectors."""


Tensors = Mapping[str, TensorEvidence]
"""Name of a tensor → what a proof run reports about it."""


class RoundingEvidence(TypedDict):
    """What one float32 training of the reference reports."""

    gradients: Tensors
    weights: Tensors
    statistics: Tensors
    losses: Sequence[Sequence[float]]


def evidence_of(value: object) -> Mapping[str, Tensors] | None:
    """Returns the evidence unchecked: our own worker wrote it, and it is as large as the model has tensors."""
    return value if isinstance(value, Mapping) else None


def roundings_of(value: object) -> tuple[RoundingEvidence, ...] | None:
    """Returns the evidence of the roundings, unchecked as in `evidence_of`."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, Mapping) for item in value):
        return None
    return tuple(value)


DerivedBy = Literal["differences", "operators", "timers"]
"""How the phases of a fused step were derived: from differences of separate executables, from the operators of a
profile, or from timers of further steps that were not fused."""
DERIVED_BY: tuple[DerivedBy, ...] = ("differences", "operators", "timers")


@dataclass(frozen=True, kw_only=True, slots=True)
class DerivedPhases:
    """The phases of a fused step as one rank derived them."""

    by: DerivedBy
    seconds: Mapping[str, float]
    """Phase → seconds per step."""
    step_s: float | None
    """The duration of the whole fused step when its phases were derived; None if it is unknown."""


def derived_phases(value: object) -> DerivedPhases | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("seconds"), Mapping):
        return None
    read = {str(name): number(seconds) for name, seconds in value["seconds"].items()}
    seconds = {name: duration for name, duration in read.items() if duration is not None}
    # The first adapter that derived phases used differences and did not report how.
    reported_by = value.get("by", "differences")
    by = next((way for way in DERIVED_BY if way == reported_by), None)
    if by is None or not seconds:
        return None
    step_s = number(value.get("step_s"))
    if step_s is None and by == "differences":
        # Differences add up to the whole step by construction; operators may not.
        step_s = sum(seconds.values())
    return DerivedPhases(by=by, seconds=seconds, step_s=step_s if step_s is None or step_s > 0 else None)


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedPhases:
    """Phases that one rank cannot separate."""

    phases: tuple[str, ...]
    """The names of two or more phases."""
    why: str


def mixed_phases(value: object) -> MixedPhases | None:
    phases = texts(value.get("phases")) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or phases is None or len(phases) < 2:
        return None
    return MixedPhases(phases=phases, why=str(value.get("why", "")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Staleness:
    """The number of updates by other workers between a worker's reading of the weights and its own update."""

    mean: float
    max: float


def staleness_of(value: object) -> Staleness | None:
    if not isinstance(value, Mapping):
        return None
    mean, most = number(value.get("mean")), number(value.get("max"))
    return None if mean is None or most is None else Staleness(mean=mean, max=most)
