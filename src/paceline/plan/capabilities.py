"""What a framework or a site can do, as data, so that `plan` can refuse a trial with a reason before anything runs.

Frameworks and sites fill these in; stages read them. A stage that needs to compare the name of a framework is missing a
field here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from paceline.errors import SpecError, did_you_mean
from paceline.plan.approximation import Approximation
from paceline.plan.knob_values import KnobValue, KnobValues
from paceline.plan.trial import ClusterChoice, Trial
from paceline.plan.vocabulary import Device, Exchange, InputKind, PhasesBy, Sharing, StrategyClass, WorkloadKind
from paceline.units import parse_quantity
from paceline.workloads.collective import Collective
from paceline.workloads.graph import Graph

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Knob:
    """One setting of a framework that a study may fix or sweep under [framework.NAME]."""

    default: KnobValue
    """Value if the study does not set the knob."""
    doc: str
    """One line for people."""
    choices: tuple[bool | int | float | str, ...] = ()
    """The allowed values; empty: any value of the default's type (or of `type`)."""
    units: Mapping[str, float] | None = None
    """The study gives a quantity with one of these units, which is stored in SI units."""
    minimum: float | None = None
    """Smallest number that makes sense."""
    maximum: float | None = None
    """Largest number that makes sense."""
    type: type[bool | int | float | str] | None = None
    """Type of the values if the default is None, which then means the framework's own default."""

    def parse(self, given: object) -> KnobValue:
        """Read one value of a study; raises ValueError that says what is expected."""
        if given is None:
            return self.default
        if self.choices:
            if not isinstance(given, (bool, int, float, str)) or not self._is_choice(given):
                raise ValueError(f"{given!r} should be one of {', '.join(map(str, self.choices))}")
            return given
        value = given if self.units is None else parse_quantity(given, dict(self.units), bare=1.0)
        kind = self.type or type(self.default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        is_wrong_bool = isinstance(value, bool) and kind is not bool
        if not isinstance(value, (bool, int, float, str)) or not isinstance(value, kind) or is_wrong_bool:
            raise ValueError(f"{value!r} should be {_WORDS.get(kind, kind.__name__)}")
        if isinstance(value, (int, float)):
            self._check_range(value)
        return value

    def _is_choice(self, value: KnobValue) -> bool:
        # True equals 1 to Python but not to a reader.
        return value in self.choices and isinstance(value, bool) == isinstance(self.choices[0], bool)

    def _check_range(self, value: float) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value!r} should be a finite number")
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"{value!r} should be at least {self.minimum:g}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"{value!r} should be at most {self.maximum:g}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Strategy:
    """One way in which workers share the training of a model."""

    strategy_class: StrategyClass = "exact"
    max_workers: int | None = None
    """Largest number of workers; 1 for single-process strategies."""
    one_process: bool = False
    """The workers of a host are devices of one process, which reports for all of them."""
    exchange: Exchange = "ring"
    servers_per_host: int = 0
    """Server processes per host, if the exchange is "server"."""
    sharing: Sharing | None = "replicated"
    """How workers share a step; None: in a way that the performance model does not cover."""
    tensor_by_tensor: bool = False
    """Whether each gradient is sent as its own message as soon as it is computed; else ranks report their messages."""
    period_knob: str | None = None
    """The knob that sets the number of steps per exchange; None: every step has one."""
    doc: str = ""
    """One line for people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a framework can do."""

    strategies: Mapping[str, Strategy]
    """The framework's own name of a strategy → the strategy."""
    data_parallel: str
    """The strategy that "data-parallel" stands for."""
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """Settings under [framework.NAME]."""
    workloads: frozenset[WorkloadKind] = frozenset({"graph"})
    collectives: Mapping[str, str] = field(default_factory=dict)
    """Collective operations that can be measured by themselves → the library that performs them."""
    layer_kinds: frozenset[str] | None = None
    """Kinds of layers that its builder can build; None: all."""
    devices: Mapping[Device, Literal["ready", "untested"]] = field(default_factory=lambda: {"cpu": "ready"})
    inputs: frozenset[InputKind] = frozenset({"resident"})
    phases: tuple[str, ...] = ()
    """Phases that it reports, in the order of the step."""
    layer_times: bool = False
    """Whether it can report the time of each layer."""
    phases_by: PhasesBy = "timers"
    trains: bool = True
    """Whether it trains the workload's graph, so that a fairness proof applies to it."""
    ports: Callable[[Trial], int] = field(default=lambda _trial: 1)
    """Ports that a run of this trial needs on each host."""
    startup_s: float = 5.0
    """Guessed seconds from process start to first step, for the estimate before anything was measured."""
    guess_step_s: Callable[[Trial], float] | None = None
    """Seconds per step, if the framework can guess them better than from FLOPs; None: guessed from FLOPs."""
    refuses: Callable[[Trial], str | None] = field(default=lambda _trial: None)
    """Why the framework cannot run this combination of settings, or None."""
    refuses_graph: Callable[[Trial, Graph], str | None] = field(default=lambda _trial, _graph: None)
    """Why this graph cannot be trained with the trial's strategy or knobs (a pipeline needs blocks …), or None."""
    approximations: Callable[[str, KnobValues], tuple[Approximation, ...]] = field(default=lambda _strategy, _knobs: ())
    """How a strategy with these knobs gives up exactness (lower precision, compression, rare exchanges), each with the
    bound that the fairness proof holds it to. Any makes an exact strategy an approximate one."""
    simulated: Callable[[KnobValues], bool] = field(default=lambda _knobs: False)
    """Whether times with these knobs are drawn from a law instead of measured."""
    prefetches: Callable[[Trial], bool] = field(
        default=lambda trial: trial.workload.input == "pipeline" and trial.workload.loader_workers > 0
    )
    """Whether the next input is fetched while a step computes."""
    bucket_knob: str | None = None
    """The knob that sets the bytes of a bucket of gradients; None: there is none."""
    compressions: Mapping[str, KnobValues] = field(default_factory=dict)
    """Compression of exchanged gradients, as the performance model names it ("fp16") → the knobs that enable it."""

    def resolve_strategy(self, name: str, where: str) -> str:
        """The framework's own name of a strategy; raises SpecError if it has no such strategy."""
        if name == "data-parallel":
            return self.data_parallel
        if name not in self.strategies:
            raise SpecError(
                f"{where}: unknown strategy '{name}'",
                hint=did_you_mean(name, [*self.strategies, "data-parallel"]),
            )
        return name

    def class_of(self, strategy: str, knobs: KnobValues) -> StrategyClass:
        """The class of a strategy with these knobs."""
        declared = self.strategies[strategy].strategy_class
        return "approximate" if declared == "exact" and self.approximations(strategy, knobs) else declared

    def refusal(self, trial: Trial, layer_kinds: frozenset[str], kind: WorkloadKind = "graph") -> str | None:
        """Why this trial of a workload of this kind with layers of these kinds cannot run, in words, or None."""
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
    """Largest number of hosts."""
    cores_per_host: int
    """Cores that workers of one host can be pinned to."""
    workers_per_host: int = 4096
    """Largest number of workers on one host, however few cores they need."""
    networks: bool = False
    """Whether it can set bandwidth and latency."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """Kind of accelerator → number per host."""
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    """Settings of the site itself, under [cluster.NAME]: partition, host list, share of a core …"""
    proves_on: str | None = None
    """The site on which fairness proofs run, since emulation does not change what is computed; None: this one."""
    refuses: Callable[[ClusterChoice], str | None] = field(default=lambda _cluster: None)
    """Why the site cannot run this cluster (more than the machine can emulate faithfully …), or None."""
