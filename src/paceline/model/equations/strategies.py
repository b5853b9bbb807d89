"""How workers share a step, and how much of their communication is exposed: one function per scheme. Pure.

replicated    every worker has all weights, and gradients are averaged: DDP, Horovod, synchronous servers
partitioned   the same, but each worker updates a shard of the weights and sends it to all: ZeRO-1
sharded       weights are gathered stage by stage, gradients are reduced and scattered: FSDP, ZeRO-3
pipelined     each worker is a stage, and micro-batches flow through: GPipe
asynchronous  every worker pushes and pulls independently, and waits only for servers
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import message_costs, neighbours, served_s
from paceline.model.equations.parameters import INDEX, Vector
from paceline.model.equations.recurrence import last_end, pipelined, sharded
from paceline.model.equations.servers import Service, asynchronous_step
from paceline.model.equations.step import Floats, Profile, Stage
from paceline.plan.vocabulary import ASYNCHRONOUS, PARTITIONED, PIPELINED, REPLICATED, SHARDED, Sharing


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Compute times per worker; all are those of the slowest worker."""

    forward_s: float
    """Seconds per forward pass."""
    backward_s: float
    """Seconds per backward pass."""
    rest_s: float
    """Seconds of update and overhead per step, independent of the number of passes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Communication of a step, and its exposed part."""

    total_s: float = 0.0
    exposed_s: float = 0.0
    latent: float = 0.0
    """Fraction of the communication that is latency: the time of empty messages."""
    waiting_s: float = 0.0
    """Seconds of waiting for other workers that the schedule implies: the bubble of a pipeline."""


def shown(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    """Communication of a step under these conditions."""
    if conditions.workers < 2 or not conditions.messages:
        return Shown()
    return WAYS[conditions.sharing](vector, conditions, work)


def _replicated(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    latencies, carried = message_costs(vector, conditions, conditions.sizes)
    costs = latencies + carried
    served = served_s(vector, conditions)
    total = float(costs.sum()) + served
    exposed = _exposed(float(vector[INDEX["start"]]), conditions, costs, work.backward_s) + served
    return Shown(total_s=total, exposed_s=exposed, latent=_part(float(latencies.sum()), total))


def _exposed(start: float, conditions: Conditions, costs: Floats, backward_s: float) -> float:
    if conditions.every > 1:
        # Weights are averaged after the step, without overlap.
        return float(costs.sum())
    if conditions.fractions is None:
        return max(0.0, float(costs.sum()) - (1 - start) * backward_s)
    ready = np.asarray(conditions.fractions) * backward_s
    return max(0.0, last_end(ready, costs) - backward_s)


def _partitioned(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    averaged = _replicated(vector, conditions, work)
    latency, carried = (
        float(seconds.sum()) / 2 for seconds in message_costs(vector, conditions, np.array([conditions.exchanged]))
    )
    # Updated shards are gathered after all compute has ended.
    total = averaged.total_s + latency + carried
    return Shown(
        total_s=total,
        exposed_s=averaged.exposed_s + latency + carried,
        latent=_part(averaged.latent * averaged.total_s + latency, total),
    )


def _sharded(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    """Sharded weights; messages are the stages in the order of the backward pass."""
    sizes = conditions.sizes
    done = np.cumsum(sizes) / sizes.sum() if conditions.fractions is None else np.asarray(conditions.fractions)
    parts = np.diff(done / done[-1], prepend=0.0)
    stages = [
        Stage(forward_s=work.forward_s * part, backward_s=work.backward_s * part, bytes=size)
        for part, size in zip(parts[::-1], sizes[::-1], strict=True)
    ]

    def half(message_sizes: Floats) -> Floats:
        latencies, carried = message_costs(vector, conditions, message_sizes)
        return (latencies + carried) / 2

    terms = sharded(stages, half, half, NOTHING_ELSE)
    latencies, _ = message_costs(vector, conditions, sizes)
    # Every stage is gathered twice and scattered once, except the last, which stays gathered.
    latency, total = float(latencies.sum() * 3 - latencies[-1]) / 2, terms.communication_s
    return Shown(total_s=total, exposed_s=terms.exposed_s, latent=_part(latency, total))


NOTHING_ELSE = Profile(forward_s=np.zeros(1), backward_s=np.zeros(1), gradient_bytes=np.zeros(1))
"""Profile of a step whose compute is in its stages."""


def _pipelined(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    """A pipeline; the single message is what one sample hands to the next stage."""
    stages = conditions.workers
    alpha, beta = neighbours(vector, conditions)
    hand_over = alpha + beta * conditions.exchanged * conditions.batch
    equal = [Stage(forward_s=work.forward_s / stages, backward_s=work.backward_s / stages, bytes=0.0)] * stages
    count = conditions.passes * stages
    free, whole = (pipelined(equal, seconds, micro_batches=count) for seconds in (0.0, hand_over))
    bubble = free - (work.forward_s + work.backward_s) * conditions.passes
    return Shown(
        total_s=2 * count * hand_over,
        exposed_s=whole - free,
        latent=_part(alpha, hand_over),
        waiting_s=max(0.0, bubble),
    )


def _asynchronous(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    alpha, beta = neighbours(vector, conditions)
    service = Service(
        size=conditions.exchanged,
        latency_s=alpha * len(conditions.messages),
        byte_s=beta,
        servers=max(1, conditions.servers),
    )
    compute_s = (work.forward_s + work.backward_s) * conditions.passes + work.rest_s
    busy = compute_s + served_s(vector, conditions)
    exposed = asynchronous_step(busy, service, workers=conditions.workers) - compute_s
    return Shown(total_s=exposed, exposed_s=exposed, latent=_part(2 * service.latency_s, exposed))


def _part(latency_s: float, total_s: float) -> float:
    return latency_s / total_s if total_s else 0.0


WAYS: dict[Sharing, Callable[[Vector, Conditions, Work], Shown]] = {
    REPLICATED: _replicated,
    PARTITIONED: _partitioned,
    SHARDED: _sharded,
    PIPELINED: _pipelined,
    ASYNCHRONOUS: _asynchronous,
}
