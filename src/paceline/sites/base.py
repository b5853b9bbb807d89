"""What every site offers. Only `run` calls it; a site knows no framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.plan.capabilities import SiteLimits
from paceline.plan.process import Process, Topology
from paceline.plan.trial import ClusterChoice


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteState:
    """What `doctor` says of a site."""

    state: str
    """"ready", "unavailable" or "untested"."""
    reason: str = ""
    fix: str = ""


class Running(ABC):
    """A started process."""

    process: Process
    pid: int | None
    """Its process id where it can be metered from here; None when it runs elsewhere."""

    @abstractmethod
    def wait(self) -> int:
        """Block until it ends; its exit code, negative for a signal."""


class Site(ABC):
    """Somewhere processes run. `open`, any number of `start`, `fetch`, `close`; then it may be opened again."""

    name: str

    @abstractmethod
    def state(self) -> SiteState:
        """Whether it can be used here, and if not why and what to do."""

    @abstractmethod
    def limits(self) -> SiteLimits:
        """What it offers."""

    @abstractmethod
    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        """Make the hosts ready that a trial asks for.

        Raises:
            SiteError: they cannot be had.
        """

    @abstractmethod
    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Running:
        """Start one process, pinned to its cores, its output in `folder/<name>.log`. It dies with us, whatever happens.

        `argv` and `env` are complete: the environment's interpreter and variables are in them already.
        """

    @abstractmethod
    def fetch(self, folder: Path) -> None:
        """Bring what the processes wrote into `folder`, on sites where it is elsewhere."""

    @abstractmethod
    def close(self) -> None:
        """End everything that was started, for sure, and give back what was opened. Idempotent."""
