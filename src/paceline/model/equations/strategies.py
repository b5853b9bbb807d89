"""How workers share a step, and how much of their communication is exposed: one function per scheme. Pure.

replicated    every worker has all weights, and gradients are averaged: DDP, Horovod, synchronous servers
partitioned   the same, but each worker updates a shard of the weights and sends it to all: ZeRO-1
sharded       weights are gathered stage by stage, gradients are reduced and scattered: FSDP, ZeRO-3
pipelined     each worker is a stage, and micro-batches flow through: GPipe
asynchronous  every worker pushes and pulls independently, and waits only for servers
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.exchange import message_costs, neighbours, served_s
from paceline.model.equations.parameters import values_of
from paceline.model.equations.recurrence import Stage, last_end, pipelined, sharded
from paceline.model.equations.servers import Service, asynchronous_step
from paceline.model.equations.stack import Stack
from paceline.plan.vocabulary import ASYNCHRONOUS, PARTITIONED, PIPELINED, REPLICATED, SHARDED, Sharing


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Compute times per worker; all are those of the slowest worker."""

    forward_s: Floats
    """Seconds per forward pass."""
    backward_s: Floats
    """Seconds per backward pass."""
    rest_s: Floats
    """Seconds of update and overhead per step, independent of the number of passes."""


def _none() -> Floats:
    return np.zeros((1, 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Communication of a step, and its exposed part."""

    total_s: Floats = field(default_factory=_none)
    exposed_s: Floats = field(default_factory=_none)
    latent: Floats = field(default_factory=_none)
    """Fraction of the communication that is latency: the time of empty messages."""
    waiting_s: Floats = field(default_factory=_none)
    """Seconds of waiting for other workers that the schedule implies: the bubble of a pipeline."""


def shown(vectors: Floats, stack: Stack, work: Work) -> Shown:
    """Communication of a step under these conditions."""
    return WAYS[stack.sharing](vectors, stack, work) if stack.exchanges else Shown()


def _replicated(vectors: Floats, stack: Stack, work: Work) -> Shown:
    latencies, carried = message_costs(vectors, stack)
    costs = latencies + carried
    served = served_s(vectors, stack)
    total = costs.sum(axis=-1) + served
    exposed = _exposed(vectors, stack, costs, work.backward_s) + served
    return Shown(total_s=total, exposed_s=exposed, latent=part_of(latencies.sum(axis=-1), total))


def _exposed(vectors: Floats, stack: Stack, costs: Floats, backward_s: Floats) -> Floats:
    sent: Floats = costs.sum(axis=-1)
    if not stack.overlaps:
        return sent
    if stack.fractions is None:
        late = sent - (1 - values_of(vectors, "start")) * backward_s
    else:
        late = last_end(stack.fractions * backward_s[..., None], costs) - backward_s
    return np.maximum(0.0, late)


def _partitioned(vectors: Floats, stack: Stack, work: Work) -> Shown:
    averaged = _replicated(vectors, stack, work)
    whole = replace(stack, sizes=stack.exchanged[..., None])
    latency, carried = (seconds[..., 0] / 2 for seconds in message_costs(vectors, whole))
    # Updated shards are gathered after all compute has ended.
    total = averaged.total_s + latency + carried
    return Shown(
        total_s=total,
        exposed_s=averaged.exposed_s + latency + carried,
        latent=part_of(averaged.latent * averaged.total_s + latency, total),
    )


def _sharded(vectors: Floats, stack: Stack, work: Work) -> Shown:
    """Sharded weights; messages are the stages in the order of the backward pass."""
    done = np.cumsum(stack.sizes, axis=-1) if stack.fractions is None else stack.fractions
    parts = np.diff(done / done[..., -1:], prepend=0.0, axis=-1)
    latencies, carried = message_costs(vectors, stack)
    # Weights are gathered, or gradients scattered, at half the cost of an all-reduce.
    half = (latencies + carried) / 2
    forward, backward = (seconds[..., None] * parts for seconds in (work.forward_s, work.backward_s))
    shape = half.shape[:2]
    step_s = np.array([_sharded_step(forward[at], backward[at], half[at]) for at in np.ndindex(shape)]).reshape(shape)
    # Every stage is gathered twice and scattered once, except the last, which stays gathered.
    latency, total = (3 * seconds.sum(axis=-1) - seconds[..., 0] for seconds in (latencies / 2, half))
    exposed = step_s - work.forward_s - work.backward_s
    return Shown(total_s=total, exposed_s=exposed, latent=part_of(latency, total))


def _sharded_step(forward_s: Floats, backward_s: Floats, half_s: Floats) -> float:
    """Step time of one configuration with one parameter vector; stages are given in the order of the backward pass."""
    times = zip(forward_s.tolist(), backward_s.tolist(), half_s.tolist(), strict=True)
    stages = [
        Stage(forward_s=forward, backward_s=backward, gather_s=half, scatter_s=half)
        for forward, backward, half in times
    ]
    return sharded(stages[::-1])


def _pipelined(vectors: Floats, stack: Stack, work: Work) -> Shown:
    """A pipeline; the single message is what one sample hands to the next stage."""
    stages = stack.workers
    alpha, beta = neighbours(vectors, stack)
    hand_over = alpha + beta * stack.exchanged * stack.batch
    count = stack.passes * stages
    compute = work.forward_s + work.backward_s
    free, whole = (pipelined(compute, seconds, stages=stages, micro_batches=count) for seconds in (_none(), hand_over))
    bubble = free - compute * stack.passes
    return Shown(
        total_s=2 * count * hand_over,
        exposed_s=whole - free,
        latent=part_of(alpha, hand_over),
        waiting_s=np.maximum(0.0, bubble),
    )


def _asynchronous(vectors: Floats, stack: Stack, work: Work) -> Shown:
    alpha, beta = neighbours(vectors, stack)
    latency = alpha * stack.sizes.shape[-1]
    service = Service(size=stack.exchanged, latency_s=latency, byte_s=beta, servers=stack.servers)
    compute_s = (work.forward_s + work.backward_s) * stack.passes + work.rest_s
    busy = compute_s + served_s(vectors, stack)
    exposed: Floats = np.asarray(asynchronous_step(busy, service, workers=stack.workers)) - compute_s
    return Shown(total_s=exposed, exposed_s=exposed, latent=part_of(2 * latency, exposed))


def part_of(latency_s: Floats, total_s: Floats) -> Floats:
    """Latency as a fraction of all communication; 0 if there is no communication."""
    return np.divide(latency_s, total_s, out=np.zeros_like(total_s), where=total_s != 0)


WAYS: dict[Sharing, Callable[[Floats, Stack, Work], Shown]] = {
    REPLICATED: _replicated,
    PARTITIONED: _partitioned,
    SHARDED: _sharded,
    PIPELINED: _pipelined,
    ASYNCHRONOUS: _asynchronous,
}
