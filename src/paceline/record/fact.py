"""How one reported fact is described and read: a descriptor with its reader, unit and meaning, and the readers.

What is reported is foreign data: a value that cannot be read as the fact's type counts as not reported. Knows no fact
by name; the list is `facts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypedDict, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)
Use = Literal["stages", "proof", "kept"]
"""Who reads a fact: stages right of the record; the fairness proof only; nobody of ours, it is kept for people."""


class Reported(Protocol):
    """A set of facts as it was stored."""

    @property
    def stored(self) -> Mapping[str, object]: ...


class Fact(Generic[T_co]):
    """One fact, read from what is stored each time it is asked for; None where it was not reported or not readable."""

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
        """Describe a fact.

        Args:
            read: from the stored value to the fact's type.
            meaning: one sentence for the protocol page.
            unit: of a number; "" where it has none.
            use: who reads it.
            formerly: the key under which workers sent it before; records with that key are still understood.
            by_host: whether the host adds it to what the rank sends.
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
    """All facts that a class describes, in the order of its source."""
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
    """A list of numbers, which may be infinite or NaN: the loss of a training that diverged is one."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, (int, float)) for item in value):
        return None
    return tuple(map(float, value))


def rows(value: object) -> tuple[tuple[float, ...], ...] | None:
    """A list of lists of numbers."""
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
    """What a proof run shows of one tensor."""

    norm: float
    sketch: Sequence[float]
    """Products with fixed random vectors."""


Tensors = Mapping[str, TensorEvidence]
"""Name of a tensor → what is shown of it."""


class RoundingEvidence(TypedDict):
    """What one float32 training of the reference shows."""

    gradients: Tensors
    weights: Tensors
    statistics: Tensors
    losses: Sequence[Sequence[float]]


def evidence_of(value: object) -> Mapping[str, Tensors] | None:
    """Written by our own worker, and as large as a model has tensors: taken as it is."""
    return value if isinstance(value, Mapping) else None


def roundings_of(value: object) -> tuple[RoundingEvidence, ...] | None:
    """As `evidence_of`."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, Mapping) for item in value):
        return None
    return tuple(value)


DerivedBy = Literal["differences", "operators", "timers"]
"""How the inside of a fused step was derived: differences of separate executables; operators of a profile; timers of
further steps, taken apart on purpose."""
DERIVED_BY: tuple[DerivedBy, ...] = ("differences", "operators", "timers")


@dataclass(frozen=True, kw_only=True, slots=True)
class DerivedPhases:
    """What one rank says is inside its fused step."""

    by: DerivedBy
    seconds: Mapping[str, float]
    """Phase → seconds per step."""
    step_s: float | None
    """The whole fused step at the time of deriving; None: not known."""


def derived_phases(value: object) -> DerivedPhases | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("seconds"), Mapping):
        return None
    read = {str(name): number(seconds) for name, seconds in value["seconds"].items()}
    seconds = {name: found for name, found in read.items() if found is not None}
    # The first adapter that derived phases did so by differences and had no word for it.
    told = value.get("by", "differences")
    by = next((known for known in DERIVED_BY if known == told), None)
    if by is None or not seconds:
        return None
    step_s = number(value.get("step_s"))
    if step_s is None and by == "differences":
        # Differences add up to the whole by construction; operators need not.
        step_s = sum(seconds.values())
    return DerivedPhases(by=by, seconds=seconds, step_s=step_s if step_s is None or step_s > 0 else None)


@dataclass(frozen=True, kw_only=True, slots=True)
class MixedPhases:
    """Phases that one rank cannot tell apart."""

    phases: tuple[str, ...]
    """Two or more."""
    why: str


def mixed_phases(value: object) -> MixedPhases | None:
    phases = texts(value.get("phases")) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or phases is None or len(phases) < 2:
        return None
    return MixedPhases(phases=phases, why=str(value.get("why", "")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Staleness:
    """Updates of others between a worker's reading of the weights and its own update."""

    mean: float
    max: float


def staleness_of(value: object) -> Staleness | None:
    if not isinstance(value, Mapping):
        return None
    mean, most = number(value.get("mean")), number(value.get("max"))
    return None if mean is None or most is None else Staleness(mean=mean, max=most)
