"""The terms of a step from parameters and conditions. The whole model is assembled here.

    slowest   g    = mean compute time of the slowest of P workers, relative to the mean of one
    exchange  X    = Σ over messages of their cost among P ranks (`exchange`)
    exposed   E    = the part of X that compute does not hide, depending on the sharing scheme (`strategies`)
    contention     = κ · (X − E): compute time lost to communication that runs at the same time
    step      T    = g · (forward + backward) + contention + E + update + overhead + exposed input

For averaged gradients in one message that may start after a fraction s of the backward pass B,
E = max(0, X − (1 − s)·B).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import values_of
from paceline.model.equations.stack import Stack, stack_of
from paceline.model.equations.stragglers import ALIKE, Straggling, expected_slowest
from paceline.model.equations.strategies import Work, shown
from paceline.model.equations.surroundings import host_slowness, simulated_exchange
from paceline.plan.vocabulary import ASYNCHRONOUS

Seconds = TypeVar("Seconds", float, Floats)
"""Of one step, or of every configuration (rows) with every parameter vector (columns)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTerms(Generic[Seconds]):
    """The parts of a step in seconds; they sum up to the step time."""

    input_s: Seconds
    forward_s: Seconds
    backward_s: Seconds
    """Backward pass without contention."""
    waiting_s: Seconds
    """Waiting for the slowest worker."""
    contention_s: Seconds
    """Compute time lost to communication that runs at the same time."""
    latency_s: Seconds
    bandwidth_s: Seconds
    """Exposed communication due to bandwidth; latency and bandwidth split it as they split all communication."""
    update_s: Seconds
    overhead_s: Seconds
    exchange_s: Seconds
    """All communication, hidden or exposed; not part of the sum."""
    latent: Seconds
    """Fraction of the communication that does not depend on the number of bytes."""
    unequal: Seconds
    """Extra compute time of the mean worker relative to an ordinary one, due to a permanently slow worker."""

    @property
    def step_s(self) -> Seconds:
        return (
            self.input_s
            + self.forward_s
            + self.backward_s
            + self.waiting_s
            + self.contention_s
            + self.exposed_s
            + self.update_s
            + self.overhead_s
        )

    @property
    def exposed_s(self) -> Seconds:
        return self.latency_s + self.bandwidth_s

    def phases(self) -> dict[str, Seconds]:
        """Seconds per phase as timers measure them on the mean worker."""
        forward, backward = self.forward_s * self.unequal, self.backward_s * self.unequal
        return {
            "data": self.input_s,
            "forward": self.forward_s + forward,
            "backward": self.backward_s + backward + self.contention_s,
            "communication": self.waiting_s - forward - backward + self.exposed_s,
            "update": self.update_s,
            "overhead": self.overhead_s,
        }


INPUT, COMPUTE, LATENCY, BANDWIDTH = "input", "compute", "communication latency", "communication bandwidth"
CONTENTION, OVERHEAD, STRAGGLER = "contention for cores", "framework overhead", "straggler wait"
CLASSES = {
    INPUT: ("input_s",),
    COMPUTE: ("forward_s", "backward_s", "update_s"),
    LATENCY: ("latency_s",),
    BANDWIDTH: ("bandwidth_s",),
    CONTENTION: ("contention_s",),
    OVERHEAD: ("overhead_s",),
    STRAGGLER: ("waiting_s",),
}
"""Maps each class of bottleneck to its terms."""


def shares(terms: StepTerms[float]) -> dict[str, float]:
    """Maps each class to its fraction of the step; they sum up to one."""
    return {name: sum(getattr(terms, part) for part in parts) / terms.step_s for name, parts in CLASSES.items()}


def bottleneck(terms: StepTerms[float]) -> str:
    """The class with the largest share."""
    by_class = shares(terms)
    return max(by_class, key=lambda name: by_class[name])


def step_terms(vector: Floats, conditions: Conditions, straggling: Straggling = ALIKE) -> StepTerms[float]:
    """Compute the terms of a step under these conditions."""
    terms = terms_of(vector[None, :], stack_of([conditions]), straggling)
    return StepTerms(**{field.name: getattr(terms, field.name).item() for field in fields(terms)})


def steps_s(vectors: Floats, conditions: Conditions, straggling: Straggling = ALIKE) -> Floats:
    """Step time under these conditions for each vector."""
    step_s: Floats = terms_of(vectors, stack_of([conditions]), straggling).step_s[0]
    return step_s


def terms_of(vectors: Floats, stack: Stack, straggling: Straggling) -> StepTerms[Floats]:
    """Compute the terms of every configuration (rows) with every parameter vector (columns).

    A term that does not depend on the configuration, or on the vector, has only one row or column.
    """

    def per_batch(name: str) -> Floats:
        """A pass or an input: a fixed part, and a part per sample."""
        seconds: Floats = values_of(vectors, f"{name}_s") + values_of(vectors, f"{name}_per_sample_s") * stack.batch
        return seconds

    passes = stack.passes
    forward, backward, feeding = per_batch("forward"), per_batch("backward"), per_batch("input") * passes
    update, overhead = values_of(vectors, "update_s"), values_of(vectors, "overhead_s")
    if stack.is_simulated:
        slow, seen = simulated_exchange(vectors, stack, forward, backward, straggling)
        slowest_host = np.array([[max(host_slowness(conditions))] for conditions in stack.rows])
        update, overhead = update * slowest_host, overhead * slowest_host
    else:
        slow = np.array([[_slowest(conditions, straggling)] for conditions in stack.rows])
        work = Work(forward_s=forward * slow, backward_s=backward * slow, rest_s=update + overhead)
        seen = shown(vectors, stack, work)
    contention = values_of(vectors, "contention") * (seen.total_s - seen.exposed_s)
    # Communication every few steps is spread over them: these are the terms of the mean step.
    exposed, exchange, contention = (value / stack.every for value in (seen.exposed_s, seen.total_s, contention))
    waiting = (slow - 1) * (forward + backward) * passes + seen.waiting_s
    busy = (forward + backward) * passes + waiting + contention + exposed + update + overhead
    return StepTerms(
        input_s=np.where(stack.prefetch, np.maximum(0.0, feeding - busy), feeding),
        forward_s=forward * passes,
        backward_s=backward * passes,
        waiting_s=waiting,
        contention_s=contention,
        latency_s=exposed * seen.latent,
        bandwidth_s=exposed * (1 - seen.latent),
        update_s=update,
        overhead_s=overhead,
        exchange_s=exchange,
        latent=seen.latent,
        unequal=np.array([[_unequal(conditions, straggling)] for conditions in stack.rows]),
    )


def _together(conditions: Conditions) -> bool:
    """Whether workers wait for the slowest; asynchronous workers do not."""
    return conditions.workers > 1 and conditions.sharing != ASYNCHRONOUS


def _slowest(conditions: Conditions, straggling: Straggling) -> float:
    """Compute time of the slowest worker relative to the mean of an ordinary one."""
    if not _together(conditions):
        return 1.0
    return expected_slowest(conditions.workers, straggling.spread, straggling.slowest)


def _unequal(conditions: Conditions, straggling: Straggling) -> float:
    return (straggling.slowest - 1) / conditions.workers if _together(conditions) else 0.0
