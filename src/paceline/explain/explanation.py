"""The explanation of one trial: its step by cause, its bottlenecks and its loss of efficiency. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from paceline.explain.finding import Finding
from paceline.stats.known_by import KnownBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """The fraction of the step that one cause takes on the critical path."""

    cause: str
    measured: float | None
    """The share by the timers of the runs; None if they do not cover this cause."""
    modelled: float
    """The share by the calibrated model."""

    @property
    def best(self) -> float:
        """The measured share if there is one, else the modelled share."""
        return self.modelled if self.measured is None else self.measured


@dataclass(frozen=True, kw_only=True, slots=True)
class Rung:
    """The step if one resource were infinitely fast, as those of all earlier rungs are already."""

    cause: str
    step_s: float
    faster: float
    """The present step ÷ the step without this cause and those of all earlier rungs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficiencyLoss:
    """The efficiency that is lost between two sizes, split by cause."""

    from_workers: int
    to_workers: int
    efficiency: float
    """Throughput per worker at the larger size ÷ that at the smaller size."""
    parts: Mapping[str, float]
    """Cause → its fraction of the loss. They sum to 1; a negative one offsets others."""
    by: KnownBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Yardstick:
    """Whether the step time is normal by one reference."""

    name: str
    """"roofline", "model" or "earlier runs"."""
    expected_s: float
    """The step time that the reference gives."""
    ratio: float
    """Measured step ÷ expected step."""
    normal: bool
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why the step of one trial takes as long as it does."""

    trial: str
    """The id of the trial."""
    label: str
    step_s: float
    """The mean step over all runs, in the time of the emulated cluster where there is one."""
    shares: tuple[Share, ...]
    """One share per cause, in the order of CAUSES; their `best` values sum to 1."""
    findings: tuple[Finding, ...]
    """The bottlenecks, largest first."""
    ladder: tuple[Rung, ...]
    """The causes in the order in which to remove them: each rung names the next bottleneck."""
    loss: EfficiencyLoss | None
    """The loss against the smallest size of its family; None for the smallest size itself."""
    yardsticks: tuple[Yardstick, ...]
    simulated: bool = False
    """Whether the step times were simulated: then nothing was measured."""
    true_scale: float = 1.0
    """Factor by which recorded seconds became those here, which are of the cluster that is emulated."""
    unknown: tuple[str, ...] = ()
    """Sentences on what could not be determined, and what to run to determine it."""

    def to_json(self) -> dict[str, object]:
        return {
            "trial": self.trial,
            "label": self.label,
            "step_s": self.step_s,
            "shares": [asdict(share) for share in self.shares],
            "findings": [finding.to_json() for finding in self.findings],
            "ladder": [asdict(rung) for rung in self.ladder],
            "loss": {**asdict(self.loss), "parts": dict(self.loss.parts)} if self.loss else None,
            "yardsticks": [asdict(yardstick) for yardstick in self.yardsticks],
            "simulated": self.simulated,
            "true_scale": self.true_scale,
            "unknown": list(self.unknown),
        }
