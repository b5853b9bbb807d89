"""Steps as events, for what the model says in closed form: who else knows nothing of its formulas."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.model.equations.simulate import SharedLink, Simulation, Stream, Task


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
