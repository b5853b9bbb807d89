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

from dataclasses import dataclass

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import INDEX, Vector
from paceline.model.equations.stragglers import ALIKE, Straggling, expected_slowest
from paceline.model.equations.strategies import Work, shown
from paceline.model.equations.surroundings import host_slowness, simulated_exchange
from paceline.plan.vocabulary import ASYNCHRONOUS


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTerms:
    """The parts of a step in seconds; they sum up to the step time."""

    input_s: float
    forward_s: float
    backward_s: float
    """Backward pass without contention."""
    waiting_s: float
    """Waiting for the slowest worker."""
    contention_s: float
    """Compute time lost to communication that runs at the same time."""
    latency_s: float
    bandwidth_s: float
    """Exposed communication due to bandwidth; latency and bandwidth split it as they split all communication."""
    update_s: float
    overhead_s: float
    exchange_s: float
    """All communication, hidden or exposed; not part of the sum."""
    latent: float = 0.0
    """Fraction of the communication that does not depend on the number of bytes."""
    unequal: float = 0.0
    """Extra compute time of the mean worker relative to an ordinary one, due to a permanently slow worker."""

    @property
    def step_s(self) -> float:
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
    def exposed_s(self) -> float:
        return self.latency_s + self.bandwidth_s

    def phases(self) -> dict[str, float]:
        """Seconds per phase as timers measure them on the mean worker."""
        forward, backward = (seconds * self.unequal for seconds in (self.forward_s, self.backward_s))
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


def shares(terms: StepTerms) -> dict[str, float]:
    """Maps each class to its fraction of the step; they sum up to one."""
    return {name: sum(getattr(terms, part) for part in parts) / terms.step_s for name, parts in CLASSES.items()}


def bottleneck(terms: StepTerms) -> str:
    """The class with the largest share."""
    by_class = shares(terms)
    return max(by_class, key=lambda name: by_class[name])


def step_terms(vector: Vector, conditions: Conditions, straggling: Straggling = ALIKE) -> StepTerms:
    """Compute the terms of a step under these conditions."""
    at = INDEX
    batch, passes = conditions.batch, conditions.passes
    forward = float(vector[at["forward_s"]] + vector[at["forward_per_sample_s"]] * batch)
    backward = float(vector[at["backward_s"]] + vector[at["backward_per_sample_s"]] * batch)
    feeding = float(vector[at["input_s"]] + vector[at["input_per_sample_s"]] * batch) * passes
    update, overhead = float(vector[at["update_s"]]), float(vector[at["overhead_s"]])
    # Asynchronous workers do not wait for the slowest.
    together = conditions.workers > 1 and conditions.sharing != ASYNCHRONOUS
    unequal = (straggling.slowest - 1) / conditions.workers if together else 0.0
    if conditions.is_simulated:
        slow, seen = simulated_exchange(vector, conditions, forward, backward, straggling)
        slowest_host = max(host_slowness(conditions))
        update, overhead = update * slowest_host, overhead * slowest_host
    else:
        slow = expected_slowest(conditions.workers, straggling.spread, straggling.slowest) if together else 1.0
        work = Work(forward_s=forward * slow, backward_s=backward * slow, rest_s=update + overhead)
        seen = shown(vector, conditions, work)
    contention = float(vector[at["contention"]]) * (seen.total_s - seen.exposed_s)
    # Communication every few steps is spread over them: these are the terms of the mean step.
    exposed, exchange, contention = (value / conditions.every for value in (seen.exposed_s, seen.total_s, contention))
    waiting = (slow - 1) * (forward + backward) * passes + seen.waiting_s
    busy = (forward + backward) * passes + waiting + contention + exposed + update + overhead
    return StepTerms(
        input_s=max(0.0, feeding - busy) if conditions.prefetch else feeding,
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
        unequal=unequal,
    )
