"""What a framework asks a site to start: processes on hosts. Shared words of two families that never meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """One machine of a topology, real or emulated."""

    name: str
    """Its name on the site."""
    address: str
    """Where its processes are reached by the others."""
    cores: tuple[int, ...]
    """Cores that its processes may be pinned to, in the order in which they are given out."""
    interface: str | None = None
    """Network device that carries the exchange, where a framework must be told."""
    ports: tuple[int, ...] = ()
    """Free ports there, as many as the framework asks for on each host; bound late by the processes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """What a site opened for one run."""

    hosts: tuple[Host, ...]
    """At least as many as the trial asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One process of a run, before it is started."""

    role: str
    """"worker", or "server", "scheduler" where a framework has them."""
    host: int
    """Index into the topology's hosts."""
    argv: tuple[str, ...]
    """Arguments after the environment's interpreter."""
    cores: tuple[int, ...]
    """Cores it is pinned to; empty: not pinned."""
    rank: int | None = None
    """Rank of a worker; None for other roles."""
    index: int = 0
    """Tells processes of another role apart."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The framework's own variables (rendezvous, threads), over those of the environment."""

    @property
    def name(self) -> str:
        return f"{self.role}{self.index if self.rank is None else self.rank}"
