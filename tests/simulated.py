"""Oracles of the model: steps as events, which know nothing of its formulas, and the closed form of unequal workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.ready import Buckets, Ready
from paceline.model.equations.recurrence import last_end
from paceline.model.equations.simulate import Job, SharedLink, Simulation, Stream, Task


def jobs_on_one_link(compute_s: Sequence[float], carry_s: Sequence[float], *, steps: int) -> list[float]:
    """Mean seconds of a step of each of several jobs that compute, then exchange, over one link that they share."""
    simulation, link = Simulation(), SharedLink()
    ends: list[Task] = []
    for compute, carry in zip(compute_s, carry_s, strict=True):
        before: list[Task] = []
        for _ in range(steps):
            computed = simulation.task(compute, before)
            before = [simulation.task(carry, [computed], link)]
        ends += before
    simulation.run()
    return [(end.ended_s or 0.0) / steps for end in ends]


def asynchronous_steps(compute_s: float, latency_s: float, busy_s: float, *, workers: int, steps: int) -> float:
    """Seconds from one step of a worker to its next, over the second half of so many steps, through one server that
    takes one request at a time.
    """
    simulation, server = Simulation(), Stream()
    halves: list[Task] = []
    ends: list[Task] = []
    for _ in range(workers):
        before: list[Task] = []
        for number in range(steps):
            computed = simulation.task(compute_s + latency_s, before)
            served = simulation.task(busy_s, [computed], server)
            before = [simulation.task(latency_s, [served])]
            if number == steps // 2 - 1:
                halves += before
        ends += before
    simulation.run()
    taken = [(end.ended_s or 0.0) - (half.ended_s or 0.0) for half, end in zip(halves, ends, strict=True)]
    return sum(taken) / workers / (steps - steps // 2)


@dataclass(frozen=True, kw_only=True)
class Layers:
    """A step of one worker, layer by layer from input to output, and what it takes to send its messages."""

    forward_s: Floats
    backward_s: Floats
    gradient_bytes: Floats
    latency_s: float
    """Seconds of latency per message."""
    byte_s: float
    """Seconds per byte."""
    buckets: Buckets

    @property
    def ready(self) -> Ready:
        """Gradients in the order of the backward pass, last layer first."""
        has_gradient = self.gradient_bytes[::-1] > 0
        fractions = (np.cumsum(self.backward_s[::-1]) / self.backward_s.sum())[has_gradient]
        return Ready(
            fractions=tuple(fractions.tolist()),
            bytes=tuple(self.gradient_bytes[::-1][has_gradient].tolist()),
            measured=True,
        )

    def job(self, slowness: Sequence[float] = (1.0,)) -> Job:
        """The step as tasks for the event simulation."""
        ready = self.ready
        messages = ready.bucketed(self.buckets)
        return Job(
            before_s=float(self.forward_s.sum()),
            backward_s=float(self.backward_s.sum()),
            ready_s=np.array(ready.of_messages(messages)) * self.backward_s.sum(),
            latencies_s=np.full(len(messages), self.latency_s),
            carried_s=self.byte_s * np.array(messages),
            slowness=tuple(slowness),
        )


def unequal_step(job: Job) -> float:
    """Closed form of a step of workers that are all different: each message waits for the slowest worker."""
    slowness = np.array(job.slowness)
    ready = ((job.before_s + job.ready_s[None, :]) * slowness[:, None]).max(axis=0)
    computed = (job.before_s + job.backward_s) * slowness.max()
    return max(float(computed), float(last_end(ready, job.latencies_s + job.carried_s)))
