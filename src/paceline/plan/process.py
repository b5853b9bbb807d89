"""The processes on hosts that a framework asks a site to start. Frameworks and sites share only these types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """One machine of a topology, real or emulated."""

    name: str
    """Name of the host on its site."""
    address: str
    """Address under which other hosts reach its processes."""
    cores: tuple[int, ...]
    """Cores to which its processes may be pinned, in the order in which they are assigned."""
    interface: str | None = None
    """Network device for the exchange, if the framework must be given one."""
    ports: tuple[int, ...] = ()
    """Free ports of the host, as many as the framework asks for; the processes bind them later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """The hosts that a site opened for one run."""

    hosts: tuple[Host, ...]
    """At least as many hosts as the trial has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One process of a run, before it is started."""

    role: str
    """"worker", or "server" or "scheduler" for frameworks that have them."""
    host: int
    """Index into the topology's hosts."""
    argv: tuple[str, ...]
    """Arguments after the environment's interpreter."""
    cores: tuple[int, ...]
    """Cores it is pinned to; empty: not pinned."""
    rank: int | None = None
    """Rank of a worker; None for other roles."""
    index: int = 0
    """Number of a process without a rank, unique within its role."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the framework (rendezvous, threads); they override those of the environment."""

    @property
    def name(self) -> str:
        return f"{self.role}{self.index if self.rank is None else self.rank}"
