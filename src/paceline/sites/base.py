"""What every site offers. Only `run` calls it; a site knows no framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from paceline.plan.capabilities import SiteLimits
from paceline.plan.process import Process, Topology
from paceline.plan.trial import ClusterChoice


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteState:
    """What `doctor` says of a site."""

    state: Literal["ready", "unavailable", "untested"]
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessUsage:
    """What a process and its children have used so far."""

    rss_bytes: float
    """Resident now."""
    cpu_s: float
    read_bytes: float
    written_bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class HostAnswer:
    """How a program ended that was run on a host."""

    host: str
    code: int
    text: str
    """The last of what it said."""


class Running(ABC):
    """A started process."""

    process: Process

    @abstractmethod
    def wait(self) -> int:
        """Block until it ends; its exit code, negative for a signal."""

    @abstractmethod
    def usage(self) -> ProcessUsage | None:
        """What it has used so far, children included; None when it is gone or cannot be asked. Cheap."""


class Site(ABC):
    """Somewhere processes run: `open`, `deliver`, any number of `start`, `stop`, `fetch`, `close`; then again."""

    name: str
    traffic_scope: str = "namespace"
    """Whose network traffic `traffic` counts: of this network "namespace" (all of the machine's), or of the "hosts"."""

    @abstractmethod
    def state(self) -> SiteState:
        """Whether it can be used here, and if not why and what to do."""

    @abstractmethod
    def limits(self) -> SiteLimits:
        """What it offers."""

    @abstractmethod
    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        """Make the hosts ready that a trial asks for, each with so many free ports.

        Raises:
            SiteError: they cannot be had.
        """

    def deliver(self, paths: Sequence[Path]) -> None:
        """Bring files that the processes read to all hosts, to the same paths, where these are not shared with us."""

    @abstractmethod
    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Running:
        """Start one process, pinned to its cores, its output in `folder/<name>.log`. It dies with us, whatever happens.

        `argv` and `env` are complete: the environment's interpreter and variables are in them already.
        """

    @abstractmethod
    def stop(self) -> list[str]:
        """End everything that was started, for sure; the names of what the kernel would not let go. Idempotent."""

    def fetch(self, folder: Path) -> None:
        """Bring what the processes wrote into `folder`, on sites where it is elsewhere. They have ended by now."""

    def facts(self) -> dict[str, Any]:
        """What the record should know of the site itself while it is open: asked and achieved links, its own cost …"""
        return {}

    def traffic(self) -> dict[str, int]:
        """Bytes sent and received so far. Cheap; Linux counts them by network namespace, not by process."""
        counters = psutil.net_io_counters()
        return {"sent_bytes": counters.bytes_sent, "received_bytes": counters.bytes_recv} if counters else {}

    def disturbs_at(self) -> int | None:
        """The step at which the open site wants to disturb the run; None: never."""
        return None

    def disturb(self) -> None:
        """Do to the hosts what the study asked for: a rank is about to take the step of `disturbs_at`."""

    def each_host(self, argv: Sequence[str], env: Mapping[str, str], *, within_s: float) -> list[HostAnswer]:
        """Run a program to its end on every host that shares no files with us; none where all hosts do."""
        del argv, env, within_s
        return []

    def own_cpu_s(self) -> float:
        """CPU seconds so far, on this machine, of what the open site itself runs beside the processes."""
        return 0.0

    def counters(self) -> list[dict[str, Any] | None]:
        """CPU seconds of each open host that is another machine, as `run.host_state` counts them; None: it is gone."""
        return []

    def memory_bytes(self) -> list[float]:
        """Memory of each open host that is another machine."""
        return []

    def clock_offsets(self) -> dict[str, float]:
        """Host → seconds that its clock is ahead of ours; those that have our clock are not in it."""
        return {}

    def lost_hosts(self) -> list[str]:
        """Open hosts that are gone."""
        return []

    def close(self) -> None:
        """Give back what was opened for one run. Idempotent."""

    def leave(self) -> None:
        """The study is over: give back what was kept from run to run. Idempotent."""

    def sweep(self, folder: Path) -> None:
        """Clean up what hosts that were killed left behind for runs under this folder, and nothing else."""

    def mend(self) -> list[str]:
        """Remove what Paceline, killed, left on this machine, and nothing else; what was removed."""
        return []
