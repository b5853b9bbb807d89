"""What a framework or a site can do, as data, so that `plan` refuses before anything runs, with the reason.

Frameworks and sites fill these in; stages read them. A stage that wants to ask for a framework by name is
missing a field here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from paceline.errors import SpecError, did_you_mean
from paceline.plan.approximation import Approximation
from paceline.plan.trial import ClusterChoice, Trial
from paceline.plan.vocabulary import Device, Exchange, InputKind, PhasesBy, Sharing, StrategyClass, WorkloadKind
from paceline.units import parse_quantity
from paceline.workloads.collective import Collective
from paceline.workloads.graph import Graph

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Knob:
    """One setting of a framework that a study may fix or sweep under [framework.NAME]."""

    default: Any
    """Value when the study says nothing."""
    doc: str
    """One line for people."""
    choices: tuple[Any, ...] = ()
    """The values it takes; empty: any of the default's type (or of `type`)."""
    units: Mapping[str, float] | None = None
    """Given as a quantity with one of these units; stored in SI."""
    minimum: float | None = None
    """Smallest number that makes sense."""
    maximum: float | None = None
    """Largest number that makes sense."""
    type: type | None = None
    """Type when the default is None (which then means: the framework's own default)."""

    def parse(self, value: Any) -> Any:
        """Read one value; raises ValueError with what it should have been."""
        if value is None:
            return self.default
        if self.choices:
            if value not in self.choices or isinstance(value, bool) != isinstance(self.choices[0], bool):
                raise ValueError(f"{value!r} should be one of {', '.join(map(str, self.choices))}")
            return value
        if self.units is not None:
            value = parse_quantity(value, dict(self.units), bare=1.0)
        kind: Any = self.type or type(self.default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ValueError(f"{value!r} should be {_WORDS.get(kind, kind.__name__)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value!r} should be a finite number")
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"{value!r} should be at least {self.minimum:g}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{value!r} should be at most {self.maximum:g}")
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Strategy:
    """One way in which workers share the work."""

    strategy_class: StrategyClass = "exact"
    max_workers: int | None = None
    """1 for single-process strategies."""
    one_process: bool = False
    """The workers of a host are devices of one process, which reports for all of them."""
    exchange: Exchange = "ring"
    servers_per_host: int = 0
    """Processes a host through which they pass, where exchange is "server"."""
    sharing: Sharing | None = "replicated"
    """None: in a way that the performance model does not know."""
    tensor_by_tensor: bool = False
    """Whether each gradient is a message of its own, sent when it is there; else ranks tell what they sent."""
    period_knob: str | None = None
    """The knob that says in how many steps there is one exchange; None: there is one in each."""
    doc: str = ""
    """One line for people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a framework can do."""

    strategies: Mapping[str, Strategy]
    """The framework's own names."""
    data_parallel: str
    """Which of them "data-parallel" means."""
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """Settings under [framework.NAME]."""
    workloads: frozenset[WorkloadKind] = frozenset({"graph"})
    collectives: Mapping[str, str] = field(default_factory=dict)
    """Operations that it offers by themselves → the library that does them."""
    layer_kinds: frozenset[str] | None = None
    """Kinds of layers its builder knows; None: all."""
    devices: Mapping[Device, Literal["ready", "untested"]] = field(default_factory=lambda: {"cpu": "ready"})
    inputs: frozenset[InputKind] = frozenset({"resident"})
    phases: tuple[str, ...] = ()
    """Phases it reports, in the order of the step."""
    layer_times: bool = False
    """Whether per-layer times can be had."""
    phases_by: PhasesBy = "timers"
    trains: bool = True
    """Whether it trains the workload's graph, so that a fairness proof can speak of it."""
    ports: Callable[[Trial], int] = field(default=lambda _trial: 1)
    """Ports that a run of this trial needs on each host."""
    startup_s: float = 5.0
    """Guess of process start to first step, for the estimate before anything was measured."""
    guess_step_s: Callable[[Trial], float] | None = None
    """Seconds a step where the framework knows better than its FLOPs; None: guessed from the FLOPs."""
    refuses: Callable[[Trial], str | None] = field(default=lambda _trial: None)
    """Combinations that the framework itself rules out: the reason, or None."""
    refuses_graph: Callable[[Trial, Graph], str | None] = field(default=lambda _trial, _graph: None)
    """Workloads that a strategy or a knob rules out (a pipeline wants blocks …): the reason, or None."""
    approximations: Callable[[str, Mapping[str, Any]], tuple[Approximation, ...]] = field(
        default=lambda _strategy, _knobs: ()
    )
    """How a strategy with these knobs gives up exactness (lower precision, compression, rare exchanges), each with the
    bound that the fairness proof holds it to. Any makes an exact strategy an approximate one."""
    simulated: Callable[[Mapping[str, Any]], bool] = field(default=lambda _knobs: False)
    """Whether these knobs make times that are drawn, not measured."""
    prefetches: Callable[[Trial], bool] = field(
        default=lambda trial: trial.workload.input == "pipeline" and trial.workload.loader_workers > 0
    )
    """Whether the next input is fetched while a step computes."""
    bucket_knob: str | None = None
    """The knob that sets the bytes of a bucket of gradients; None: there is none."""
    compressions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What gradients can be exchanged as, in the model's words ("fp16") → the knobs that make it so."""

    def resolve_strategy(self, wanted: str, where: str) -> str:
        """The framework's own name for a strategy; raises SpecError for one it does not have."""
        if wanted == "data-parallel":
            return self.data_parallel
        if wanted not in self.strategies:
            raise SpecError(
                f"{where}: unknown strategy '{wanted}'",
                hint=did_you_mean(wanted, [*self.strategies, "data-parallel"]),
            )
        return wanted

    def class_of(self, strategy: str, knobs: Mapping[str, Any]) -> StrategyClass:
        """What a strategy with these knobs promises."""
        declared = self.strategies[strategy].strategy_class
        return "approximate" if declared == "exact" and self.approximations(strategy, knobs) else declared

    def refusal(self, trial: Trial, layer_kinds: frozenset[str], kind: WorkloadKind = "graph") -> str | None:
        """Why this trial, of a workload of this kind with layers of these kinds, cannot run, in words, or None."""
        if kind == Collective.kind and kind not in self.workloads:
            return "offers no collective operations by themselves"
        if kind not in self.workloads:
            return f"runs a {' or a '.join(sorted(self.workloads))}, and {trial.workload.model} is a {kind}"
        strategy = self.strategies[trial.framework.strategy]
        if strategy.max_workers is not None and trial.workers > strategy.max_workers:
            return f"strategy {trial.framework.strategy} takes at most {strategy.max_workers} worker(s)"
        if self.layer_kinds is not None and (missing := layer_kinds - self.layer_kinds):
            return f"no layers of kind {', '.join(sorted(missing))}"
        if trial.cluster.device not in self.devices:
            return f"does not run on {trial.cluster.device}"
        if trial.workload.input not in self.inputs:
            return f"has no {trial.workload.input} input"
        if trial.measure.layers and not self.layer_times:
            return "cannot give per-layer times"
        return self.refuses(trial)

    def refuses_collective(self, trial: Trial, collective: Collective) -> str | None:
        """Why this operation cannot be measured by itself, in words, or None."""
        if collective.operation not in self.collectives:
            return f"has no {collective.operation}; it has {', '.join(self.collectives)}"
        if trial.framework.strategy != self.data_parallel:
            return f"a collective is exchanged as by strategy {self.data_parallel}, not by {trial.framework.strategy}"
        if trial.workload.input != "resident":
            return "a collective reads no input"
        return collective.refusal(trial.workers)


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteLimits:
    """What a site offers."""

    hosts: int
    """Most hosts it has."""
    cores_per_host: int
    """Cores that workers of one host can be pinned to."""
    workers_per_host: int = 4096
    """Most workers that one host can hold, however few cores they need."""
    networks: bool = False
    """Whether it can set bandwidth and latency."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """Accelerators a host, by kind."""
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """Settings of the site itself, under [cluster.NAME]: partition, host list, share of a core …"""
    proves_on: str | None = None
    """A site whose runs show as well what is computed, without what this one emulates; None: this one."""
    refuses: Callable[[ClusterChoice], str | None] = field(default=lambda _cluster: None)
    """What the site itself rules out (more than the machine can emulate truthfully …): the reason, or None."""
