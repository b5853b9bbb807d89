"""A study: a question with axes. Plain data; this module neither looks at the machine nor knows a framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from paceline.workloads import COLLECTIVE

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """The links between hosts, which the site emulates or the user describes."""

    bandwidth_bytes_per_s: float | None = None
    """Rate of each host's link; None: not limited."""
    latency_s: float | None = None
    """One-way delay; None: not changed."""
    jitter_s: float | None = None
    """Largest deviation of the one-way delay from the latency, in both directions; None: not changed."""
    preset: str | None = None
    """The name that the study gives ("1GbE"); the other fields hold its values."""

    def to_json(self) -> dict[str, object]:
        return {
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "latency_s": self.latency_s,
            "jitter_s": self.jitter_s,
            "preset": self.preset,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Network:
        """Read what `to_json` wrote."""
        return cls(**data)

    @property
    def label(self) -> str:
        if self.preset:
            return self.preset
        parts = []
        if self.bandwidth_bytes_per_s is not None:
            parts.append(f"{self.bandwidth_bytes_per_s * 8 / 1e6:g}Mbit")
        if self.latency_s is not None:
            parts.append(f"{self.latency_s * 1e6:g}us")
        if self.jitter_s is not None:
            parts.append(f"jitter{self.jitter_s * 1e6:g}us")
        return "-".join(parts) or "as-is"


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeats:
    """How often each trial is repeated in fresh processes."""

    minimum: int
    """Number of runs that every trial gets."""
    maximum: int
    """Largest number of runs per trial; equal to the minimum if the number is fixed."""
    until: float | None = None
    """Stop early once the 95 % interval's relative half-width is below this; None if the number is fixed."""


StudyValue: TypeAlias = "bool | int | float | str | Network | Repeats | None"
"""A checked value of a key of the catalogue; None: the key was not given and has no default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """What the user asked. Every key is an axis: a tuple of one value (fixed) or of several (swept)."""

    name: str
    """Readable name; letters, digits, dash and underscore."""
    question: str
    """The question in the user's words; the report answers it."""
    source: str
    """Where it was read from, for messages."""
    axes: Mapping[str, tuple[StudyValue, ...]]
    """"section.key" → values, for every key of the catalogue (defaults filled in)."""
    knobs: Mapping[str, Mapping[str, tuple[object, ...]]] = field(default_factory=dict)
    """framework → knob → values as the file has them, from [framework.NAME]; `plan` checks them."""
    model_options: Mapping[str, Mapping[str, tuple[object, ...]]] = field(default_factory=dict)
    """model → option → values as the file has them, from [workload.MODEL]; the model checks them."""
    of_models: Mapping[str, Mapping[str, tuple[StudyValue, ...]]] = field(default_factory=dict)
    """model → "section.key" → values that replace the study's for this model, such as its batch or its steps."""
    site_options: Mapping[str, Mapping[str, tuple[object, ...]]] = field(default_factory=dict)
    """site → knob → values as the file has them, from [cluster.SITE]; `plan` checks them."""
    interpreters: Mapping[str, str] = field(default_factory=dict)
    """framework → the user's own Python, instead of the pinned environment."""
    environments: Mapping[str, str] = field(default_factory=dict)
    """framework → the pinned environment to use instead of its own."""
    repeats: Repeats = field(default_factory=lambda: Repeats(minimum=3, maximum=3))
    """How often each trial is repeated."""

    @property
    def folder(self) -> Path:
        """The folder of the study file; files that the study names are relative to it."""
        return Path(self.source).parent

    @property
    def of_collectives(self) -> bool:
        """Whether the study measures collective operations and trains nothing."""
        return self.axes["workload.model"] == (COLLECTIVE,)

    @property
    def of_scripts(self) -> bool:
        """Whether the study runs training programs of the user instead of models."""
        return self.axes["workload.script"] != (None,)

    def single(self, key: str, kind: type[Value], model: str | None = None) -> Value:
        """The value of a key that cannot be an axis, for the study or for one of its models."""
        (value,) = self.values(key, kind, model)
        return value

    def repeats_of(self, model: str) -> Repeats:
        """How often a trial of this model is repeated."""
        return self.single("measure.repeats", Repeats, model)

    def values(self, key: str, kind: type[Value], model: str | None = None) -> tuple[Value, ...]:
        """The values of a key: those of the model, or else those of the study.

        Args:
            key: "section.key", of a key that was given or has a default.
            kind: the type of its values.
            model: the model to look for first.
        """
        return of_type(self._values(key, model), kind)

    def optional_values(self, key: str, kind: type[Value], model: str | None = None) -> tuple[Value | None, ...]:
        """The values of a key that need not be given: as `values`, with None where it was not."""
        return tuple(None if value is None else of_type((value,), kind)[0] for value in self._values(key, model))

    def _values(self, key: str, model: str | None) -> tuple[StudyValue, ...]:
        return self.of_models.get(model or "", {}).get(key, self.axes[key])


def of_type(values: tuple[StudyValue, ...], kind: type[Value]) -> tuple[Value, ...]:
    """The same values with the type that the catalogue's parser gave them."""
    typed = tuple(value for value in values if isinstance(value, kind))
    assert len(typed) == len(values), f"{values} should all be {kind.__name__}"
    return typed
