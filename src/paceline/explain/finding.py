"""A finding: a bottleneck of a trial, with the evidence, the possible gain and the remedy. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, INPUT, LATENCY, OVERHEAD, STRAGGLER
from paceline.stats.estimate import MODELLED_LEVEL, Estimate
from paceline.stats.known_by import MODELLED, KnownBy

COPY = "copy"
CAUSES = (INPUT, COPY, COMPUTE, LATENCY, BANDWIDTH, CONTENTION, OVERHEAD, STRAGGLER)
"""The causes that the time of a step is attributed to, in the order of display."""


def promised(value: float, low: float, high: float) -> Estimate:
    """Returns a gain that follows from the trial's own timers and simple bounds."""
    return Estimate(value=value, low=low, high=high, level=MODELLED_LEVEL, unit="1", by=MODELLED, n_runs=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """One number that a finding rests on."""

    name: str
    """What the number is, in words."""
    value: float
    unit: str
    """An SI unit, "1" for a fraction, or the things counted."""
    by: KnownBy
    """MEASURED, SIMULATED, DERIVED, MODELLED or GUESSED."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """What to do about a finding."""

    words: str
    """The remedy in the imperative: "send gradients in larger buckets"."""
    axes: Mapping[str, object] = field(default_factory=dict)
    """Keys of a study and their new values, e.g. {"cluster.threads_per_worker": 1}; {} if no study can apply it."""
    what_if: str = ""
    """The same change for `predict --what-if`; "" if the model has no such input."""
    gain: Estimate | None = None
    """The predicted throughput after the remedy ÷ before; None if it cannot be predicted."""

    def to_json(self) -> dict[str, object]:
        gain = self.gain.to_json() if self.gain else None
        return {"words": self.words, "axes": dict(self.axes), "what_if": self.what_if, "gain": gain}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One bottleneck of a trial, with the evidence."""

    cause: str
    """One of CAUSES."""
    sentence: str
    """The finding in one sentence."""
    share: float
    """The fraction of the step that the cause takes."""
    gain: Estimate | None
    """The step now ÷ the step without this cause; None if it cannot be predicted."""
    by: KnownBy
    """How the share is known."""
    sure: str
    """How certain the finding is, and why, in words."""
    numbers: tuple[Number, ...]
    """The numbers that it rests on; never empty."""
    records: tuple[str, ...]
    """The ids of the runs that it rests on; never empty."""
    change: Remedy | None = None
    experiment: str = ""
    """A study file (TOML) that would confirm or refute it; "" if no study can."""

    def __post_init__(self) -> None:
        if not self.numbers or not self.records:
            raise ValueError(f"{self.cause}: a finding without evidence")

    def to_json(self) -> dict[str, object]:
        return {
            "cause": self.cause,
            "sentence": self.sentence,
            "share": self.share,
            "gain": self.gain.to_json() if self.gain else None,
            "by": self.by,
            "sure": self.sure,
            "numbers": [number.to_json() for number in self.numbers],
            "records": list(self.records),
            "change": self.change.to_json() if self.change else None,
            "experiment": self.experiment,
        }
