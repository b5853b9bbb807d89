"""What every site offers. Only the stage `run` calls it; a site knows nothing of frameworks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from paceline.plan.capabilities import SiteLimits
from paceline.plan.process import Process, Topology
from paceline.plan.trial import ClusterChoice


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteState:
    """Whether a site can be used; shown by `paceline doctor`."""

    state: Literal["ready", "unavailable", "untested"]
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessUsage:
    """What a process and its children have used so far."""

    rss_bytes: float
    """Resident memory now."""
    cpu_s: float
    read_bytes: float
    written_bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BusyCounter:
    """CPU seconds of a whole machine, and of the process of ours that counts them, so far; two bracket a run."""

    wall_s: float
    busy_s: float
    """All cores, all processes, without idle, I/O wait and steal."""
    steal_s: float
    """Time that a hypervisor gave to others."""
    host_s: float
    """Our own process there, threads included, children excluded."""
    cores: int
    pressure_s: float | None
    """Time since boot in which some task that could run had no core."""
    oom_kills: int
    """Processes that the kernel killed since boot because memory ran out."""
    load1: float
    cpu_freq_mhz: list[float] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HostAnswer:
    """How a program ended that was run on a host."""

    host: str
    code: int
    text: str
    """The end of its output."""


class Running(ABC):
    """A started process."""

    process: Process

    @abstractmethod
    def wait(self) -> int:
        """Block until it ends; returns its exit code, which is negative for a signal."""

    @abstractmethod
    def usage(self) -> ProcessUsage | None:
        """What it and its children have used so far; None when it is gone or cannot be asked. Cheap to ask."""


class Site(ABC):
    """A place where processes run.

    For each run `open`, `deliver`, any number of `start`, `stop`, `fetch` and `close` are called, in this order.
    """

    name: str
    traffic_scope: str = "namespace"
    """Whose traffic `traffic` counts: of this network "namespace", which is the whole machine, or of the "hosts"."""

    @abstractmethod
    def state(self) -> SiteState:
        """Whether it can be used here; if not, why, and what to do about it."""

    @abstractmethod
    def limits(self) -> SiteLimits:
        """What it offers."""

    @abstractmethod
    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        """Make the hosts ready that a trial asks for, and find so many free ports on each.

        Raises:
            SiteError: they cannot be had.
        """

    def deliver(self, paths: Sequence[Path]) -> None:
        """Bring the files that the processes read to all hosts that do not share them with us, to the same paths."""

    @abstractmethod
    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Running:
        """Start one process, pinned to its cores, with its output in `folder/<name>.log`.

        It ends when we end, even if we are killed. `argv` and `env` are complete: they contain the interpreter and the
        variables of the environment.
        """

    @abstractmethod
    def stop(self) -> list[str]:
        """End everything that was started; the names of processes that even SIGKILL did not end. Idempotent."""

    def fetch(self, folder: Path) -> None:
        """Bring what the processes, ended by now, wrote into `folder`, from hosts that do not share it with us."""

    def facts(self) -> dict[str, object]:
        """What the record should tell of the open site itself: links as asked and as achieved, what it costs …"""
        return {}

    def traffic(self) -> dict[str, int]:
        """Bytes sent and received so far. Cheap to ask; Linux counts them per network namespace, not per process."""
        counters = psutil.net_io_counters()
        return {"sent_bytes": counters.bytes_sent, "received_bytes": counters.bytes_recv} if counters else {}

    def disturbs_at(self) -> int | None:
        """The step at which the open site will disturb the run; None: it will not."""
        return None

    def disturb(self) -> None:
        """Inject the fault that the study asked for; called when a rank is about to take the step of `disturbs_at`."""

    def each_host(self, argv: Sequence[str], env: Mapping[str, str], *, within_s: float) -> list[HostAnswer]:
        """Run a program to its end on every host that shares no files with us; no answers where all hosts do."""
        del argv, env, within_s
        return []

    def own_cpu_s(self) -> float:
        """CPU seconds so far of what the open site itself runs on this machine beside the processes."""
        return 0.0

    def counters(self) -> list[BusyCounter | None]:
        """The counters of each open host that is another machine; None for one that is gone."""
        return []

    def memory_bytes(self) -> list[float]:
        """Bytes of memory of each open host that is another machine."""
        return []

    def clock_offsets(self) -> dict[str, float]:
        """Host → seconds that its clock is ahead of ours; hosts that have our clock are left out."""
        return {}

    def lost_hosts(self) -> list[str]:
        """Names of the open hosts that are gone."""
        return []

    def close(self) -> None:
        """Give back what was opened for one run. Idempotent."""

    def leave(self) -> None:
        """Give back what was kept from run to run; called at the end of a study. Idempotent."""

    def sweep(self, folder: Path) -> None:
        """Remove what was left behind of runs under this folder whose supervisor was killed, and nothing else."""

    def mend(self) -> list[str]:
        """Remove what a killed Paceline left on this machine, and nothing else; returns what was removed."""
        return []
