"""All that is said about one trial: where its step goes, what holds it back, what it loses by its size. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from paceline.explain.finding import Finding
from paceline.stats.known_by import KnownBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The part of the step that one cause takes on its critical path."""

    cause: str
    measured: float | None
    """From timers of the runs; None where they cannot tell it."""
    modelled: float
    """By the calibrated model."""

    @property
    def best(self) -> float:
        """What was measured, else what the model says."""
        return self.modelled if self.measured is None else self.measured


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """If one resource were infinitely fast, those of the rungs above being so already."""

    cause: str
    step_s: float
    faster: float
    """Step as it is ÷ step with this rung and all above it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficiencyLoss:
    """What is lost between two sizes, split by cause."""

    from_workers: int
    to_workers: int
    efficiency: float
    """Throughput a worker at the larger size over that at the smaller."""
    parts: Mapping[str, float]
    """Cause → its part of the loss; they sum up to 1. Below zero: it makes up for others."""
    by: KnownBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Yardstick:
    """Whether a number is normal, against one measure."""

    name: str
    """"roofline", "model" or "earlier runs"."""
    expected_s: float
    """A step by this measure."""
    ratio: float
    """Measured ÷ expected."""
    normal: bool
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """One trial."""

    trial: str
    """Id."""
    label: str
    step_s: float
    """Mean over runs."""
    shares: tuple[Share, ...]
    """One a cause, in the order of CAUSES; the best known of them sum up to 1."""
    findings: tuple[Finding, ...]
    """What holds it back most comes first."""
    ladder: tuple[Rung, ...]
    """Best first: after the first rung, the cause of the second is the next bottleneck."""
    loss: EfficiencyLoss | None
    """Against the smallest size of its family; None for that one."""
    yardsticks: tuple[Yardstick, ...]
    simulated: bool = False
    """Whether its times are drawn from a law: then nothing of it was measured."""
    unknown: tuple[str, ...] = ()
    """What could not be told, and what to run to know it, in sentences."""

    def to_json(self) -> dict[str, object]:
        return {
            "trial": self.trial,
            "label": self.label,
            "step_s": self.step_s,
            "shares": [asdict(share) for share in self.shares],
            "findings": [finding.to_json() for finding in self.findings],
            "ladder": [asdict(rung) for rung in self.ladder],
            "loss": {**asdict(self.loss), "parts": dict(self.loss.parts)} if self.loss else None,
            "yardsticks": [asdict(one) for one in self.yardsticks],
            "simulated": self.simulated,
            "unknown": list(self.unknown),
        }
