"""The closed form of a step: messages on one stream, each sent when it is ready and the previous one has ended.

    start(i) = max(ready(i), end(i − 1));  end(i) = start(i) + cost(i)

is exact for a synchronous step (Shi et al. 2018, "A DAG model of synchronous stochastic gradient descent in distributed
deep learning"). `simulate` computes the same without this formula; a property test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.step import Floats, Messages, Profile, Stage, Terms

Cost = Callable[[Floats], Floats]
"""Maps bytes to seconds."""


def last_end(ready_s: Floats, costs_s: Floats) -> float:
    """When the last message ends.

    This unrolls the recurrence: after the last idle time of the stream, all messages are sent back to back.
    """
    if len(costs_s) == 0:
        return 0.0
    return float((ready_s + np.cumsum(costs_s[::-1])[::-1]).max())


def closed(profile: Profile, *, exposed_s: float, communication_s: float) -> Terms:
    """The terms of a whole step with this much exposed communication."""
    busy = profile.overhead_s + profile.forward_total_s + profile.backward_total_s + exposed_s + profile.update_s
    feeding = profile.input_s + profile.copy_s
    shown = max(0.0, feeding - busy) if profile.prefetch else feeding
    return Terms(
        step_s=busy + shown,
        forward_s=profile.forward_total_s,
        backward_s=profile.backward_total_s,
        exposed_s=exposed_s,
        update_s=profile.update_s,
        overhead_s=profile.overhead_s,
        input_s=shown,
        communication_s=communication_s,
    )


def sharded(stages: list[Stage], gather: Cost, scatter: Cost, profile: Profile) -> Terms:
    """Sharded weights (FSDP, ZeRO-3; Rajbhandari et al. 2020): each stage is gathered before its forward pass and again
    before its backward pass, one stage ahead of compute; its gradients are scattered after it. One stream carries
    everything.
    """
    sizes = np.array([stage.bytes for stage in stages])
    gather_s, scatter_s = gather(sizes), scatter(sizes)
    stream = compute = 0.0
    computed: list[float] = []
    for index, stage in enumerate(stages):
        # One stage ahead: a gather waits until the stage two before it has freed its memory.
        allowed = computed[index - 2] if index >= 2 else 0.0
        stream = max(stream, allowed) + gather_s[index]
        compute = max(compute, stream) + stage.forward_s
        computed.append(compute)
    backward: list[float] = []
    scatters: list[tuple[float, float]] = []
    order = list(range(len(stages)))[::-1]
    for turn, index in enumerate(order):
        if turn > 0:  # the last stage is still gathered from its forward pass
            allowed = backward[turn - 2] if turn >= 2 else computed[-1]
            # First come, first served: scatters that were ready before this gather go first.
            while scatters and scatters[0][0] <= allowed:
                when, cost = scatters.pop(0)
                stream = max(stream, when) + cost
            stream = max(stream, allowed) + gather_s[index]
            compute = max(compute, stream)
        compute += stages[index].backward_s
        backward.append(compute)
        scatters.append((compute, scatter_s[index]))
    for when, cost in scatters:
        stream = max(stream, when) + cost
    compute_total = sum(stage.forward_s + stage.backward_s for stage in stages)
    whole = max(compute, stream)
    communication = float(gather_s.sum() + gather_s[:-1].sum() + scatter_s.sum())
    return closed(profile, exposed_s=whole - compute_total, communication_s=communication)


def pipelined(stages: list[Stage], hand_over_s: float, *, micro_batches: int, update_s: float = 0.0) -> float:
    """Step time of a pipeline (GPipe; Huang et al. 2019): micro-batches flow forward, then backward.

    Args:
        hand_over_s: Seconds to send activations, or their gradients, from one stage to the next.
    """
    forward = _flow([stage.forward_s for stage in stages], hand_over_s, micro_batches)
    backward = _flow([stage.backward_s for stage in stages][::-1], hand_over_s, micro_batches)
    return forward + backward + update_s


def _flow(times: list[float], hand_over_s: float, count: int) -> float:
    """When the last of `count` micro-batches leaves the last stage."""
    done = [0.0] * len(times)
    for _ in range(count):
        arrived = 0.0
        for stage, time in enumerate(times):
            done[stage] = max(done[stage], arrived) + time
            arrived = done[stage] + hand_over_s
    return done[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """How many configurations of one step differ, with one value per configuration."""

    latency_s: Floats
    """Latency per message."""
    per_byte_s: Floats
    compute: Floats
    """Factor on all compute times."""


def sweep(profile: Profile, messages: Messages, configurations: Sweep) -> Floats:
    """Step time for each configuration; all algorithms of `collectives` are a latency and a time per byte."""
    try:
        from paceline.model.equations import kernels  # noqa: PLC0415  compiled code takes a while to load, and few need it
    except ImportError:
        return sweep_numpy(profile, messages, configurations)
    return kernels.sweep(
        messages.ready_s,
        messages.sizes,
        profile.forward_total_s + profile.update_s + profile.overhead_s,
        profile.backward_total_s,
        profile.input_s + profile.copy_s,
        profile.prefetch,
        configurations.latency_s,
        configurations.per_byte_s,
        configurations.compute,
    )


def sweep_numpy(profile: Profile, messages: Messages, configurations: Sweep) -> Floats:
    """The same as `sweep` without compiled code."""
    scale, end = configurations.compute, np.zeros_like(configurations.compute)
    for ready, size in zip(messages.ready_s, messages.sizes, strict=True):
        end = np.maximum(end, ready * scale) + configurations.latency_s + configurations.per_byte_s * size
    fixed = profile.forward_total_s + profile.update_s + profile.overhead_s
    busy = fixed * scale + np.maximum(profile.backward_total_s * scale, end)
    feeding = profile.input_s + profile.copy_s
    steps_s: Floats = np.maximum(busy, feeding) if profile.prefetch else busy + feeding
    return steps_s


def unequal(profile: Profile, messages: Messages, costs_s: Floats, slowness: Floats) -> float:
    """Step time among unequal workers: each message waits for the slowest.

    Args:
        slowness: Factor on the compute time of each worker.
    """
    slowest = float(slowness.max())
    start = (profile.overhead_s + profile.forward_total_s) * slowness
    ready = (start[:, None] + messages.ready_s[None, :] * slowness[:, None]).max(axis=0)
    end = last_end(ready, costs_s)
    computed = float(start.max()) + profile.backward_total_s * slowest
    busy = max(computed, end) + profile.update_s * slowest
    feeding = profile.input_s + profile.copy_s
    return max(busy, feeding) if profile.prefetch else busy + feeding
