"""A choice with its predicted value, the reason, and what it costs to switch. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.explain.finding import Finding
from paceline.plan.vocabulary import StrategyClass
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import KnownBy


def setting(value: object) -> str:
    """The value of a knob as a person reads it."""
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
    """What is not at its default, or not as it was."""
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
    """Of the goal, in its unit."""
    unit: str
    by: KnownBy
    """"measured", "simulated", "modelled" or "guessed"."""
    throughput: Estimate
    """Samples a second: what every goal rests on."""
    gain: Estimate | None
    """Of the goal against the present choice, as a factor, above 1 is better; None: there is no present one."""
    tied: bool
    """Cannot be told apart from the first of the list."""
    because: tuple[Finding, ...]
    switching: str
    """What it costs to go there from the present choice, in words; "" where nothing changes."""
    trial: str | None
    """Id of the trial, where it was measured."""
    experiment: str
    """A study file (TOML) that tries it; "" where it was measured."""

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
    """Everything that is recommended."""

    goal: str
    """"throughput", "epoch-time", "cost" or "energy"."""
    sentence: str
    """The recommendation in one sentence."""
    ranked: tuple[Recommendation, ...]
    """Best first; () where nothing is allowed."""
    front: tuple[int, ...]
    """Places in `ranked` that no other beats in both throughput and price (or power); () with one goal."""
    settling: str
    """The few runs that would settle the doubt, as a study file; "" where there is none."""
    not_considered: tuple[str, ...]
    """In sentences."""

    def to_json(self) -> dict[str, object]:
        return {
            "goal": self.goal,
            "sentence": self.sentence,
            "ranked": [one.to_json() for one in self.ranked],
            "front": list(self.front),
            "settling": self.settling,
            "not_considered": list(self.not_considered),
        }
