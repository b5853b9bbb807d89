"""The host half of an adapter: what a framework can do and which processes a run needs. It imports no framework."""

from __future__ import annotations

from abc import ABC, abstractmethod

from paceline.plan.capabilities import Capabilities
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial

WORKER_ARGV = ("-m", "paceline_worker")
"""How every rank is started; the job file holds everything else."""


class Framework(ABC):
    """The host half of one framework."""

    name: str
    """Id in studies."""
    title: str
    """Name of the framework for people."""
    module: str
    """The worker module that trains, e.g. paceline_worker.frameworks.torch.training."""
    environment: str | None
    """Name of its pinned environment; None: it runs in the host's own interpreter."""
    imports_packages: bool = False
    """Whether ranks in the host's own interpreter import its packages, which are then part of its lock."""
    package: str | None = None
    """The distribution that gives the framework's version."""
    needs_weights: bool = True
    """Whether ranks read the initial weights and the data."""
    capabilities: Capabilities

    def module_for(self, kind: str) -> str:
        """The worker module for a workload of this kind."""
        return f"{self.module.rpartition('.')[0]}.collective" if kind == "collective" else self.module

    @abstractmethod
    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """All processes of a run, in the order in which they are started. Pure."""


def one_worker_a_slot(trial: Trial, topology: Topology, env: dict[str, str]) -> list[Process]:
    """Workers rank by rank, filling host after host, each pinned to its own cores.

    If workers are devices of one process, that process has the cores of all of them. If the study allows more threads
    than cores, cores are shared round robin.
    """
    workers = []
    ranks_per_host = trial.ranks // trial.cluster.hosts
    threads = trial.cluster.threads_per_worker * trial.workers // trial.ranks
    for rank in range(trial.ranks):
        host, local = divmod(rank, ranks_per_host)
        cores = topology.hosts[host].cores
        pinned = tuple(dict.fromkeys(cores[(local * threads + k) % len(cores)] for k in range(threads)))
        workers.append(Process(role="worker", rank=rank, host=host, argv=WORKER_ARGV, cores=pinned, env=dict(env)))
    return workers
