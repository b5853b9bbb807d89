"""A trial: one fully resolved configuration, with nothing left to decide. Its id is a readable name plus a hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any

from paceline.plan.pace import Pace, at_true_pace
from paceline.plan.vocabulary import BatchScaling, Device, InputKind, StrategyClass
from paceline.spec.study import Network
from paceline.workloads.collective import HASH_PREFIX, Collective, load_collective
from paceline.workloads.program import HASH_PREFIX as PROGRAM_PREFIX

ADDED_LATER = (("framework", "one_process"), ("measure", "evidence"))
"""No part of a trial's identity while they are off, so that records made before they were there keep their ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadChoice:
    """What is trained."""

    model: str
    """Model id, or the user's file as the study names it."""
    options: Mapping[str, Any]
    """Options given to the model; of a script its arguments, and how it is started where that is not the usual way."""
    graph: str
    """Identity of what is trained: hash of the neutral graph that came out, or of the script's files."""
    batch_per_worker: int
    """Samples a worker and step."""
    scaling: BatchScaling
    """"weak" (batch per worker was asked) or "strong" (global batch was asked)."""
    input: InputKind
    loader_workers: int
    """Processes a worker that feed the pipeline."""
    seed: int
    """Seed of weights and data."""

    @property
    def name(self) -> str:
        """The model in a name of ours: its id, or what its file is called."""
        return re.sub(r"[^A-Za-z0-9_-]+", "-", PurePath(self.model).name.removesuffix(".py"))

    @property
    def identity(self) -> str:
        """What is trained: the graph says it all of a model; a script is another one with other arguments."""
        if self.graph.startswith(PROGRAM_PREFIX) and self.options:
            return f"{self.graph} {json.dumps(dict(self.options), sort_keys=True)}"
        return self.graph

    @property
    def collective(self) -> Collective | None:
        """The operation, where nothing is trained and a collective is measured by itself."""
        return load_collective(self.options) if self.graph.startswith(HASH_PREFIX) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameworkChoice:
    """What trains it."""

    name: str
    """Framework id."""
    strategy: str
    """The framework's own name of the strategy, resolved."""
    strategy_class: StrategyClass
    """"exact", "approximate" or "asynchronous"; classes are never ranked in one list."""
    knobs: Mapping[str, Any]
    """Every knob of the framework with its value, defaults included."""
    environment: str
    """Name of the environment, or the interpreter's path."""
    lock: str
    """Digest of the environment's lock; a changed lock is another trial."""
    simulated: bool = False
    """Times are drawn from a law, not measured."""
    one_process: bool = False
    """The workers of a host are devices of one process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterChoice:
    """Where it is trained."""

    site: str
    """Site id."""
    hosts: int
    """Number of hosts."""
    workers_per_host: int
    """Workers on each host."""
    threads_per_worker: int
    """Threads, and cores, of each worker."""
    device: Device
    network: Network | None
    """Links between hosts; None: as they are."""
    oversubscribe: bool
    """More threads than cores were asked for on purpose."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Every knob of the site with its value, defaults included."""

    @property
    def workers(self) -> int:
        return self.hosts * self.workers_per_host

    @property
    def pace(self) -> Pace:
        """What the site does to time on purpose."""
        return Pace.of(self.options)

    @property
    def lasting_options(self) -> dict[str, Any]:
        """Options of the site that change what a trial's true times are: all but its slow motion."""
        return at_true_pace(self.options)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureChoice:
    """How it is measured."""

    warmup_steps: int
    """Steps before measuring."""
    steps: int
    """Measured steps."""
    layers: bool
    """Per-layer times wanted."""
    evidence: bool = False
    """A run of the fairness proof: dropout off, gradients and weights reported."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When a run is ended by force. No part of the trial's identity: they change no number of a run that ends well."""

    time_s: float
    """Wall time of a run, set-up included."""
    memory_bytes: float | None
    """Resident memory a worker; None: its share of what is free."""


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
        """Processes that train and report: one a worker, or one a host that holds all of its workers."""
        return self.cluster.hosts if self.framework.one_process else self.workers

    @property
    def batch_global(self) -> int:
        return self.workload.batch_per_worker * self.workers

    @property
    def steps_a_round(self) -> int:
        """Steps that a rank reports for each that the study asks for: of a collective, one for each size."""
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

    def to_json(self) -> dict[str, Any]:
        return {name: _section(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
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


def _section(choice: Any) -> dict[str, Any]:
    """As `asdict`, without its deep copies: an id is asked of every trial of a store."""
    plain = {name: getattr(choice, name) for name in choice.__dataclass_fields__}
    for name, value in plain.items():
        if isinstance(value, Network):
            plain[name] = value.to_json()
        elif isinstance(value, Mapping):
            plain[name] = dict(value)
    return plain
