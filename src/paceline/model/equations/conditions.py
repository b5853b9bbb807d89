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
    slowness: tuple[float, ...] = ()
    """How many times slower than a usual host the first, the second … computes; hosts beyond these are usual ones."""
    repeating: bool = False
    """Whether the hosts beyond these begin again with the first."""
    oversubscription: float = 1.0
    """What all hosts together can send, over what the network between them can carry."""
    jobs: int = 1
    """Equal jobs on the same links, this one included."""

    @property
    def is_simulated(self) -> bool:
        """Whether hosts differ or links are shared, for which there is no closed form."""
        return bool(self.slowness) or self.oversubscription > 1 or self.jobs > 1

    def alone(self) -> Conditions:
        """One worker on a usual host, with nobody to share anything with."""
        return replace(self, workers=1, hosts=1, slowness=(), repeating=False, oversubscription=1.0, jobs=1)

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
