"""Closed forms of schedules: when the last message of a step ends, and how long sharded and pipelined steps take.

Messages go over one stream, each sent when it is ready and the previous one has ended:

    start(i) = max(ready(i), end(i − 1));  end(i) = start(i) + cost(i)

is exact for a synchronous step (Shi et al. 2018, "A DAG model of synchronous stochastic gradient descent in distributed
deep learning"). `simulate` computes the same without this formula; a property test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Floats


def last_end(ready_s: Floats, costs_s: Floats) -> Floats:
    """When the last message ends; messages are the last axis.

    This unrolls the recurrence: after the last idle time of the stream, all messages are sent back to back.
    """
    left = np.cumsum(costs_s[..., ::-1], axis=-1)[..., ::-1]
    end: Floats = (ready_s + left).max(axis=-1, initial=0.0)
    return end


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage of a sharded step: layers whose weights are gathered and scattered together."""

    forward_s: float
    backward_s: float
    gather_s: float
    scatter_s: float


def sharded(stages: Sequence[Stage]) -> float:
    """Step time with sharded weights (FSDP, ZeRO-3; Rajbhandari et al. 2020).

    Each stage is gathered before its forward pass and again before its backward pass, one stage ahead of compute; its
    gradients are scattered after it. One stream carries everything.
    """
    stream = compute = 0.0
    computed: list[float] = []
    for index, stage in enumerate(stages):
        # One stage ahead: a gather waits until the stage two before it has freed its memory.
        allowed = computed[index - 2] if index >= 2 else 0.0
        stream = max(stream, allowed) + stage.gather_s
        compute = max(compute, stream) + stage.forward_s
        computed.append(compute)
    backward: list[float] = []
    scatters: list[tuple[float, float]] = []
    for turn, stage in enumerate(reversed(stages)):
        if turn > 0:  # the last stage is still gathered from its forward pass
            allowed = backward[turn - 2] if turn >= 2 else computed[-1]
            # First come, first served: scatters that were ready before this gather go first.
            while scatters and scatters[0][0] <= allowed:
                when, cost = scatters.pop(0)
                stream = max(stream, when) + cost
            stream = max(stream, allowed) + stage.gather_s
            compute = max(compute, stream)
        compute += stage.backward_s
        backward.append(compute)
        scatters.append((compute, stage.scatter_s))
    for when, cost in scatters:
        stream = max(stream, when) + cost
    return max(compute, stream)


def pipelined(compute_s: Floats, hand_over_s: Floats, *, stages: Floats, micro_batches: Floats) -> Floats:
    """Step time of a pipeline of equal stages (GPipe; Huang et al. 2019): micro-batches flow forward, then backward.

    Args:
        compute_s: Seconds of the forward and the backward pass of one micro-batch through all stages.
        hand_over_s: Seconds to send activations, or their gradients, from one stage to the next.
    """
    return (micro_batches + stages - 1) / stages * compute_s + 2 * (stages - 1) * hand_over_s
