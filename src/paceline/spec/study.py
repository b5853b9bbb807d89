"""A study: a question with axes. Plain data; nothing here looks at the machine or knows a framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.workloads import COLLECTIVE


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """The links between hosts that the site should emulate or that the user states."""

    bandwidth_bytes_per_s: float | None = None
    """Rate of each host's link; None: as fast as it is."""
    latency_s: float | None = None
    """One-way delay; None: as it is."""
    jitter_s: float | None = None
    """Most that the one-way delay differs from the latency, either way; None: as it is."""
    preset: str | None = None
    """The name that the study gave ("1GbE"); its values stand beside it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "latency_s": self.latency_s,
            "jitter_s": self.jitter_s,
            "preset": self.preset,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Network:
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
    """Runs that every trial gets."""
    maximum: int
    """Runs that no trial exceeds; equal to the minimum when the number is exact."""
    until: float | None = None
    """Stop early once the 95 % interval's relative half-width is below this; None when exact."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """What the user asked, every key an axis: a tuple of one value (fixed) or several (swept)."""

    name: str
    """Readable name; letters, digits, dash and underscore."""
    question: str
    """The question in the user's words; the report answers it."""
    source: str
    """Where it was read from, for messages."""
    axes: Mapping[str, tuple[Any, ...]]
    """"section.key" → values, for every key of the catalogue (defaults filled in)."""
    knobs: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """framework → knob → values, from [framework.NAME]; checked against its capabilities in `plan`."""
    model_options: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """model → option → values, from [workload.MODEL]."""
    of_models: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """model → "section.key" → values that hold for it instead of the study's: its batch, its steps."""
    site_options: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    """site → knob → values, from [cluster.SITE]; checked against the site's own in `plan`."""
    interpreters: Mapping[str, str] = field(default_factory=dict)
    """framework → the user's own Python, instead of the pinned environment."""
    environments: Mapping[str, str] = field(default_factory=dict)
    """framework → the pinned environment to use instead of its own."""
    repeats: Repeats = field(default_factory=lambda: Repeats(minimum=3, maximum=3))
    """How often each trial is repeated."""

    @property
    def folder(self) -> Path:
        """Where files that the study names are looked for: beside it."""
        return Path(self.source).parent

    @property
    def of_collectives(self) -> bool:
        """Whether it measures collective operations by themselves, and trains nothing."""
        return self.axes["workload.model"] == (COLLECTIVE,)

    def one(self, key: str, model: str | None = None) -> Any:
        """The value of a key that cannot be an axis, of the study or of one of its models."""
        (value,) = self.values(key, model)
        return value

    def repeats_of(self, model: str) -> Repeats:
        """How often a trial of this model is repeated."""
        own: Repeats = self.one("measure.repeats", model)
        return own

    def values(self, key: str, model: str | None = None) -> tuple[Any, ...]:
        """The values of a key: a model's own, or else the study's."""
        return self.of_models.get(model or "", {}).get(key, self.axes[key])
