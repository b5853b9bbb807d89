"""A claim about what holds training back: what it is bound by, the evidence, and what could be gained. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, INPUT, LATENCY, OVERHEAD, STRAGGLER
from paceline.model.forecast.predict import LEVEL
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import MODELLED, KnownBy

COPY = "copy"
CAUSES = (INPUT, COPY, COMPUTE, LATENCY, BANDWIDTH, CONTENTION, OVERHEAD, STRAGGLER)
"""What a moment of a step can be spent on, in the order in which a reader wants them."""


def promised(value: float, low: float, high: float) -> Estimate:
    """A gain that follows from the trial's own timers and plain bounds."""
    return Estimate(value=value, low=low, high=high, level=LEVEL, unit="1", by=MODELLED, n_runs=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """One number behind a claim."""

    name: str
    """In words."""
    value: float
    unit: str
    """SI, "1" for a fraction, or what is counted."""
    by: KnownBy
    """MEASURED, SIMULATED, DERIVED, MODELLED or GUESSED."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """What to do about a finding."""

    words: str
    """In the imperative: "send gradients in larger buckets"."""
    axes: Mapping[str, object] = field(default_factory=dict)
    """Keys of a study and their new values, e.g. {"cluster.threads_per_worker": 1}; {}: no study can do it."""
    what_if: str = ""
    """The same for `predict --what-if`; "" where the model has no such input."""
    gain: Estimate | None = None
    """Throughput after it ÷ before, as far as that can be said ahead."""

    def to_json(self) -> dict[str, object]:
        gain = self.gain.to_json() if self.gain else None
        return {"words": self.words, "axes": dict(self.axes), "what_if": self.what_if, "gain": gain}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What holds a trial back, in one sentence, with the evidence."""

    cause: str
    """One of CAUSES."""
    sentence: str
    """As a colleague would say it aloud."""
    share: float
    """Of the step."""
    gain: Estimate | None
    """Step now ÷ step without this cause; None where nobody can tell."""
    by: KnownBy
    """Where the share comes from."""
    sure: str
    """How sure it is, and why, in words."""
    numbers: tuple[Number, ...]
    """What it rests on; never empty."""
    records: tuple[str, ...]
    """Ids of the runs it rests on; never empty."""
    change: Remedy | None = None
    experiment: str = ""
    """A study file (TOML) that would confirm or refute it; "" where no study can."""

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
