"""Oracles of the model: steps as events, which know nothing of its formulas, and the plain form of an overlapped step."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.model.equations.recurrence import closed, last_end
from paceline.model.equations.simulate import SharedLink, Simulation, Stream, Task
from paceline.model.equations.step import Floats, Messages, Profile, Terms


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


def overlapped(profile: Profile, messages: Messages, costs_s: Floats) -> Terms:
    """A synchronous data-parallel step whose messages are sent while the backward pass goes on."""
    end = last_end(messages.ready_s, costs_s)
    exposed = max(0.0, end - profile.backward_total_s)
    return closed(profile, exposed_s=exposed, communication_s=float(costs_s.sum()))
