"""The conditions of a step: workers, hosts, batch, links, and what is exchanged. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.plan.vocabulary import REPLICATED, RING, Exchange, Sharing


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """The conditions of one configuration."""

    workers: int
    hosts: int
    batch: float
    """Samples per worker and pass."""
    bandwidth: float | None = None
    """Bytes per second of each host's link; None if it is not limited."""
    latency_s: float | None = None
    """One-way latency added to that of the link itself; None for no added latency."""
    messages: tuple[float, ...] = ()
    """Bytes of each message of a step, in the order of the backward pass; for a pipeline, the bytes that one sample
    hands from a stage to the next.
    """
    fractions: tuple[float, ...] | None = None
    """Fraction of the backward pass after which each message is ready; None if unknown and therefore fitted."""
    exchange: Exchange = RING
    sharing: Sharing = REPLICATED
    servers: int = 1
    """Number of servers if the exchange goes through servers."""
    prefetch: bool = False
    """Whether the next batch is fetched during the step."""
    passes: int = 1
    """Batches whose gradients are accumulated before one exchange; for a pipeline, micro-batches per stage."""
    every: int = 1
    """Steps per exchange (local SGD)."""
    slowness: tuple[float, ...] = ()
    """Slowness of the first hosts relative to an ordinary host; further hosts are ordinary."""
    repeating: bool = False
    """Whether the pattern of `slowness` repeats for further hosts."""
    oversubscription: float = 1.0
    """Bandwidth of all hosts together divided by that of the network between them."""
    jobs: int = 1
    """Number of equal jobs on the same links, including this one."""

    @property
    def is_simulated(self) -> bool:
        """Whether hosts differ or links are shared, which has no closed form."""
        return bool(self.slowness) or self.oversubscription > 1 or self.jobs > 1

    def alone(self) -> Conditions:
        """The same conditions for a single worker on an ordinary host that shares nothing."""
        return replace(self, workers=1, hosts=1, slowness=(), repeating=False, oversubscription=1.0, jobs=1)

    @property
    def samples(self) -> float:
        """Samples per worker and step."""
        return self.batch * self.passes

    @property
    def sizes(self) -> Floats:
        return np.asarray(self.messages, dtype=np.float64)

    @property
    def exchanged(self) -> float:
        """Bytes exchanged per step."""
        return float(sum(self.messages))

    def change(self, **fields: object) -> Conditions:
        return replace(self, **fields)  # type: ignore[arg-type]
