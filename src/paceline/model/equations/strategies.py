"""How workers share a step, and what of their exchange shows: one function for each way. Pure.

replicated    every worker has all weights, and gradients are averaged: DDP, Horovod, synchronous servers
partitioned   the same, but each worker updates a share of the weights and sends it to all: ZeRO-1
sharded       weights are gathered stage by stage, gradients are reduced and scattered: FSDP, ZeRO-3
pipelined     each worker is a stage, and micro-batches flow through: GPipe
asynchronous  every worker pushes and pulls by itself, and waits for servers only
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
    """What one worker computes."""

    forward_s: float
    """Of one pass, as all below of the slowest worker."""
    backward_s: float
    rest_s: float
    """Of a step, whatever the number of passes: update and overhead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """An exchange, and what of it no computing hides."""

    total_s: float = 0.0
    exposed_s: float = 0.0
    latent: float = 0.0
    """The part of it that messages would take which carry nothing."""
    waiting_s: float = 0.0
    """For other workers, by the order of things: a pipeline's bubble."""


def shown(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    """The exchange of a step under these conditions."""
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
        # Weights are averaged after the step: nothing computes meanwhile.
        return float(costs.sum())
    if conditions.fractions is None:
        return max(0.0, float(costs.sum()) - (1 - start) * backward_s)
    ready = np.asarray(conditions.fractions) * backward_s
    return max(0.0, last_end(ready, costs) - backward_s)


def _partitioned(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    averaged = _replicated(vector, conditions, work)
    latency, carried = (
        float(one.sum()) / 2 for one in message_costs(vector, conditions, np.array([conditions.exchanged]))
    )
    # Shares that were updated are gathered when nothing is left to compute.
    total = averaged.total_s + latency + carried
    return Shown(
        total_s=total,
        exposed_s=averaged.exposed_s + latency + carried,
        latent=_part(averaged.latent * averaged.total_s + latency, total),
    )


def _sharded(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    """Messages are the stages in the order of the backward pass."""
    sizes = conditions.sizes
    done = np.cumsum(sizes) / sizes.sum() if conditions.fractions is None else np.asarray(conditions.fractions)
    parts = np.diff(done / done[-1], prepend=0.0)
    stages = [
        Stage(forward_s=work.forward_s * part, backward_s=work.backward_s * part, bytes=size)
        for part, size in zip(parts[::-1], sizes[::-1], strict=True)
    ]

    def half(of: Floats) -> Floats:
        latencies, carried = message_costs(vector, conditions, of)
        return (latencies + carried) / 2

    found = sharded(stages, half, half, NOTHING_ELSE)
    latencies, _ = message_costs(vector, conditions, sizes)
    # Every stage is gathered twice and scattered once, but for the last, which stays gathered.
    latency, total = float(latencies.sum() * 3 - latencies[-1]) / 2, found.communication_s
    return Shown(total_s=total, exposed_s=found.exposed_s, latent=_part(latency, total))


NOTHING_ELSE = Profile(forward_s=np.zeros(1), backward_s=np.zeros(1), gradient_bytes=np.zeros(1))
"""Of a step whose computing stands in its stages."""


def _pipelined(vector: Vector, conditions: Conditions, work: Work) -> Shown:
    """The one message is what a sample hands from stage to stage; as many passes a worker are micro-batches."""
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
    computing = (work.forward_s + work.backward_s) * conditions.passes + work.rest_s
    busy = computing + served_s(vector, conditions)
    exposed = asynchronous_step(busy, service, workers=conditions.workers) - computing
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
