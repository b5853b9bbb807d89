"""A recommendation: ranked choices with their values, reasons and the effort of switching. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.explain.finding import Finding
from paceline.plan.vocabulary import StrategyClass
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import KnownBy


def setting(value: object) -> str:
    """Formats the value of a knob for display."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One configuration."""

    framework: str
    strategy: str
    model: str
    workers: int
    hosts: int
    batch: int
    threads: int
    network: str | None
    knobs: Mapping[str, object]
    """The settings in which the choices of its framework differ."""
    strategy_class: StrategyClass = "exact"
    """"exact", "approximate" or "asynchronous"."""

    @property
    def label(self) -> str:
        size = f"{self.workers} worker{'s' if self.workers != 1 else ''}"
        size += f" × {self.threads} threads" if self.threads > 1 else ""
        hosts = f" on {self.hosts} hosts" if self.hosts > 1 else ""
        knobs = "".join(f" · {name}={setting(value)}" for name, value in self.knobs.items())
        link = f" · {self.network}" if self.network else ""
        promise = "" if self.strategy_class == "exact" else f" ({self.strategy_class})"
        name = f"{self.framework} {self.strategy}{promise}"
        return f"{name} · {self.model} · {size}{hosts} · batch {self.batch}{link}{knobs}"

    def to_json(self) -> dict[str, object]:
        names = ("framework", "strategy", "strategy_class", "model", "workers", "hosts", "batch", "threads", "network")
        return {**{name: getattr(self, name) for name in names}, "knobs": dict(self.knobs), "label": self.label}


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommendation:
    """One choice of a ranked list."""

    choice: Choice
    value: Estimate
    """The value of the goal, in its unit."""
    unit: str
    by: KnownBy
    """"measured", "simulated", "modelled" or "guessed"."""
    throughput: Estimate
    """The throughput in samples per second, from which every goal is computed."""
    gain: Estimate | None
    """The gain over the present choice as a factor, above 1 if better; None if there is no present choice."""
    tied: bool
    """Whether it cannot be told apart from the first choice of the list."""
    because: tuple[Finding, ...]
    """The bottlenecks of the choice, or of the nearest trial that was run."""
    switching: str
    """The effort of switching from the present choice, in words; "" if nothing changes."""
    trial: str | None
    """The id of the trial; None if it was not run."""
    experiment: str
    """A study file (TOML) that tries it; "" if it was run."""

    def to_json(self) -> dict[str, object]:
        return {
            **self.choice.to_json(),
            "value": self.value.to_json(),
            "by": self.by,
            "throughput": self.throughput.to_json(),
            "gain": self.gain.to_json() if self.gain else None,
            "tied": self.tied,
            "because": [finding.to_json() for finding in self.because],
            "switching": self.switching,
            "trial": self.trial,
            "experiment": self.experiment,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """The whole answer of a recommendation."""

    goal: str
    """"throughput", "epoch-time", "cost" or "energy"."""
    sentence: str
    """The recommendation in one sentence."""
    ranked: tuple[Recommendation, ...]
    """The choices, best first; () if nothing meets the limits."""
    front: tuple[int, ...]
    """Indices in `ranked` of the Pareto front of throughput and cost per sample; () if no price or power is given."""
    settling: str
    """A study file with the few runs that would decide which is best; "" if there is no doubt."""
    not_considered: tuple[str, ...]
    """Sentences on what was not considered, and why."""

    def to_json(self) -> dict[str, object]:
        return {
            "goal": self.goal,
            "sentence": self.sentence,
            "ranked": [recommendation.to_json() for recommendation in self.ranked],
            "front": list(self.front),
            "settling": self.settling,
            "not_considered": list(self.not_considered),
        }
