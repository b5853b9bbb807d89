"""Asynchronous training through parameter servers (Dean et al. 2012): workers wait for servers, not for each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paceline.model.equations.collectives import Number


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """The load of one worker's step on the servers."""

    size: Number
    """Bytes of the pushed gradients, equal to those of the pulled weights."""
    latency_s: Number
    """Seconds of latency per message."""
    byte_s: Number
    """Seconds per byte on a server's link."""
    servers: Number = 1.0
    """Number of servers; each holds an equal part."""

    @property
    def busy_s(self) -> Number:
        """Seconds that each server is busy with one worker's step."""
        return 2 * self.size / self.servers * self.byte_s


def asynchronous_step(compute_s: Number, service: Service, *, workers: Number) -> Number:
    """Seconds between steps of one worker in steady state.

    This is a closed queue with equal times: either each worker finds the servers free, or the servers are never idle
    and workers take turns. Equal times reach these bounds (Muntz and Wong 1974).
    """
    alone = compute_s + 2 * service.latency_s + service.busy_s
    return np.maximum(alone, workers * service.busy_s)
