"""What a prediction is asked for: a number of workers and hosts, a batch, links, and what is exchanged. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from paceline.model.equations.step import Floats
from paceline.plan.vocabulary import REPLICATED, RING, Exchange, Sharing


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """One configuration."""

    workers: int
    hosts: int
    batch: float
    """Samples a worker and pass."""
    bandwidth: float | None = None
    """Bytes a second of each host's link; None: as it is."""
    latency_s: float | None = None
    """One way, beside what the link has anyway; None: as it is."""
    messages: tuple[float, ...] = ()
    """Bytes of each message of a step, in the order of the backward pass; of a pipeline, those that one sample hands
    from a stage to the next.
    """
    fractions: tuple[float, ...] | None = None
    """How much of the backward pass is over when each is ready; None: not known, and part of what is fitted."""
    exchange: Exchange = RING
    sharing: Sharing = REPLICATED
    servers: int = 1
    """Of an exchange through servers."""
    prefetch: bool = False
    """Whether the next input is fetched while the step computes."""
    passes: int = 1
    """Batches whose gradients are summed up before one exchange. Of a pipeline: its micro-batches a stage."""
    every: int = 1
    """Steps from one exchange to the next (local SGD)."""

    @property
    def samples(self) -> float:
        """Of a worker and step."""
        return self.batch * self.passes

    @property
    def sizes(self) -> Floats:
        return np.asarray(self.messages, dtype=np.float64)

    @property
    def exchanged(self) -> float:
        """Bytes of a step."""
        return float(sum(self.messages))

    def change(self, **fields: object) -> Conditions:
        return replace(self, **fields)  # type: ignore[arg-type]
