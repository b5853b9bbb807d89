"""Asynchronous training through parameter servers (Dean et al. 2012): workers wait for servers, not for each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """What a worker's step asks of the servers."""

    size: float
    """Bytes of the gradients, which are pushed, and of the weights, which are pulled."""
    latency_s: float
    """Of one message."""
    byte_s: float
    """Of a server's link."""
    servers: int = 1
    """Each holds an equal part."""

    @property
    def busy_s(self) -> float:
        """How long each server is busy with one worker's step."""
        return 2 * self.size / self.servers * self.byte_s


def asynchronous_step(compute_s: float, service: Service, *, workers: int) -> float:
    """Seconds from one step of a worker to its next, once all go on.

    A closed queue with equal times: either each worker finds the servers free, or they are never idle and workers take
    turns (the bounds of Muntz and Wong 1974, which equal times reach).
    """
    alone = compute_s + 2 * service.latency_s + service.busy_s
    return max(alone, workers * service.busy_s)
