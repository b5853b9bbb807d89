"""A trial: one configuration with every value decided. Its id is a readable name plus a hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, TypeAlias

from paceline.plan.knob_values import KnobValue, KnobValues
from paceline.plan.pace import Pace, at_true_pace
from paceline.plan.vocabulary import BatchScaling, Device, InputKind, StrategyClass
from paceline.spec.study import Network
from paceline.workloads.collective import HASH_PREFIX, Collective, load_collective
from paceline.workloads.program import HASH_PREFIX as PROGRAM_PREFIX

ADDED_LATER = (("framework", "one_process"), ("measure", "evidence"))
"""Fields that are not part of the id while they are off, so that records made before they existed keep their ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadChoice:
    """What is trained, and with which batch, input and seed."""

    model: str
    """Model id, or the user's file as the study names it."""
    options: Mapping[str, object]
    """Options of the model as the study has them, or those of a script: its arguments, and how and where it is started
    if the study says so. The workload checks them."""
    graph: str
    """Identity of the workload: the hash of the neutral graph, of the script's files, or of the collective."""
    batch_per_worker: int
    """Samples per worker and step."""
    scaling: BatchScaling
    """"weak" (the study gives the batch per worker) or "strong" (it gives the global batch)."""
    input: InputKind
    loader_workers: int
    """Processes per worker that feed the pipeline."""
    seed: int
    """Seed of weights and data."""

    @property
    def name(self) -> str:
        """The model as it appears in ids: its own id, or the name of its file."""
        return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePath(self.model).name.removesuffix(".py"))

    @property
    def identity(self) -> str:
        """Identity of what is trained: the graph of a model, or the files of a script together with its options."""
        if self.graph.startswith(PROGRAM_PREFIX) and self.options:
            return f"{self.graph} {json.dumps(dict(self.options), sort_keys=True)}"
        return self.graph

    @property
    def collective(self) -> Collective | None:
        """The collective operation that is measured; None if something is trained."""
        return load_collective(self.options) if self.graph.startswith(HASH_PREFIX) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameworkChoice:
    """The framework that trains, with its strategy, knobs and environment."""

    name: str
    """Framework id."""
    strategy: str
    """The framework's own name of the strategy."""
    strategy_class: StrategyClass
    """Strategies of different classes are never ranked in one list."""
    knobs: KnobValues
    """Every knob of the framework with its value, defaults included."""
    environment: str
    """Name of the environment, or the interpreter's path."""
    lock: str
    """Digest of the environment's lock; with another lock it is another trial."""
    simulated: bool = False
    """Whether times are drawn from a law instead of measured."""
    one_process: bool = False
    """Whether the workers of a host are devices of one process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterChoice:
    """The site, hosts, workers and links on which the trial runs."""

    site: str
    """Site id."""
    hosts: int
    """Number of hosts."""
    workers_per_host: int
    """Workers on each host."""
    threads_per_worker: int
    """Threads of each worker, and cores to which it is pinned."""
    device: Device
    network: Network | None
    """Links between hosts; None: not changed."""
    oversubscribe: bool
    """Whether the study allows more threads than cores."""
    options: KnobValues = field(default_factory=dict)
    """Every knob of the site with its value, defaults included."""

    @property
    def workers(self) -> int:
        return self.hosts * self.workers_per_host

    @property
    def pace(self) -> Pace:
        """How the site changes time on purpose."""
        return Pace.of(self.options)

    @property
    def lasting_options(self) -> dict[str, KnobValue]:
        """Options of the site on which a trial's true times depend: all except its dilation."""
        return at_true_pace(self.options)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureChoice:
    """How the trial is measured."""

    warmup_steps: int
    """Steps before measuring."""
    steps: int
    """Measured steps."""
    layers: bool
    """Whether the time of each layer is recorded."""
    evidence: bool = False
    """Whether this is a run of the fairness proof: dropout is off, gradients and weights are reported."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits at which a run is killed. They are not part of the id: they change no number of a successful run."""

    time_s: float
    """Wall-clock seconds of a run, set-up included."""
    memory_bytes: float | None
    """Resident memory per worker; None: its share of the free memory."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One fully resolved configuration."""

    workload: WorkloadChoice
    framework: FrameworkChoice
    cluster: ClusterChoice
    measure: MeasureChoice
    limits: Limits = field(compare=False)

    @property
    def workers(self) -> int:
        return self.cluster.workers

    @property
    def ranks(self) -> int:
        """Processes that train and report: one per worker, or one per host if it holds all of the host's workers."""
        return self.cluster.hosts if self.framework.one_process else self.workers

    @property
    def batch_global(self) -> int:
        return self.workload.batch_per_worker * self.workers

    @property
    def true_scale(self) -> float:
        """Factor from recorded seconds to those of the cluster that is emulated; no site slows times of a law."""
        return 1.0 if self.framework.simulated else self.cluster.pace.true_scale

    @property
    def steps_a_round(self) -> int:
        """Steps that a rank reports per step of the study: for a collective one per message size, else one."""
        collective = self.workload.collective
        return len(collective.sizes) if collective else 1

    @cached_property
    def id(self) -> str:
        """Readable name plus hash of the content, e.g. torch-ddp.resnet20.b32.2w1t-9f3c1a2b; hashed once."""
        content = self.to_json()
        del content["limits"]
        for section, key in ADDED_LATER:
            if not content[section][key]:
                del content[section][key]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.label}-{digest}"

    @property
    def label(self) -> str:
        """The readable part of the id."""
        cluster = self.cluster
        workers = f"{cluster.hosts}h" if cluster.hosts > 1 else ""
        workers += f"{cluster.workers_per_host}w{cluster.threads_per_worker}t"
        network = f".{cluster.network.label}" if cluster.network else ""
        framework = f"{self.framework.name}-{self.framework.strategy}"
        collective = self.workload.collective
        done = collective.operation if collective else f"{self.workload.name}.b{self.workload.batch_per_worker}"
        return f"{framework}.{done}.{workers}{network}"

    def to_json(self) -> dict[str, dict[str, object]]:
        return {name: _section(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
        """Read what `to_json` wrote."""
        cluster = dict(data["cluster"])
        if cluster["network"] is not None:
            cluster["network"] = Network.from_json(cluster["network"])
        return cls(
            workload=WorkloadChoice(**data["workload"]),
            framework=FrameworkChoice(**data["framework"]),
            cluster=ClusterChoice(**cluster),
            measure=MeasureChoice(**data["measure"]),
            limits=Limits(**data["limits"]),
        )


_Section: TypeAlias = WorkloadChoice | FrameworkChoice | ClusterChoice | MeasureChoice | Limits


def _section(choice: _Section) -> dict[str, object]:
    """As `asdict` but without deep copies, because the id of every trial of a store is computed."""
    plain: dict[str, object] = {name: getattr(choice, name) for name in choice.__dataclass_fields__}
    for name, value in plain.items():
        if isinstance(value, Network):
            plain[name] = value.to_json()
        elif isinstance(value, Mapping):
            plain[name] = dict(value)
    return plain
