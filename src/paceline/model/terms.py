"""From parameters and conditions to a step: where its time goes. The one place where the model is put together.

    slowest   g    = mean of the largest of P workers' computing, over the mean of one
    exchange  X    = Σ over messages of their cost among P ranks (`collectives`)
    exposed   E    = what of it no backward pass hides: messages on one stream, each when it is ready (`recurrence`)
    contention     = κ · (X − E): computing that runs beside the exchange loses so much
    step      T    = max over workers of forward and backward + contention + E + update + overhead + input that shows

With one message that may start after a part s of the backward pass this is E = max(0, X − (1 − s)·B).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from paceline.model import collectives
from paceline.model.collectives import Wire
from paceline.model.conditions import HALVING, RING, SERVER, TREE, Conditions
from paceline.model.parameters import INDEX
from paceline.model.recurrence import last_end
from paceline.model.step import Floats
from paceline.model.stragglers import ALIKE, Straggling, expected_slowest

ALGORITHMS = {RING: collectives.ring, TREE: collectives.tree, HALVING: collectives.halving_doubling}


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTerms:
    """Parts of a step that sum up to it, in seconds."""

    input_s: float
    forward_s: float
    backward_s: float
    """Without what the exchange takes from it."""
    waiting_s: float
    """For the slowest worker."""
    contention_s: float
    """Computing that the exchange behind it slows down."""
    latency_s: float
    bandwidth_s: float
    """Exposed exchange, split as all of the exchange splits."""
    update_s: float
    overhead_s: float
    exchange_s: float
    """All of the exchange, hidden or not: no part of the sum."""
    unequal: float = 0.0
    """By which part the mean worker computes longer than an ordinary one: one of them is slow for good."""

    @property
    def step_s(self) -> float:
        return (
            self.input_s + self.forward_s + self.backward_s + self.waiting_s + self.contention_s + self.exposed_s
            + self.update_s + self.overhead_s
        )  # fmt: skip

    @property
    def exposed_s(self) -> float:
        return self.latency_s + self.bandwidth_s

    def phases(self) -> dict[str, float]:
        """As timers see them on the mean worker."""
        forward, backward = (seconds * self.unequal for seconds in (self.forward_s, self.backward_s))
        return {
            "data": self.input_s, "forward": self.forward_s + forward,
            "backward": self.backward_s + backward + self.contention_s,
            "communication": self.waiting_s - forward - backward + self.exposed_s,
            "update": self.update_s, "overhead": self.overhead_s,
        }  # fmt: skip


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
"""What may hold a step back → the terms that are its doing."""


def shares(terms: StepTerms) -> dict[str, float]:
    """Class → its part of the step; they sum up to one."""
    return {name: sum(getattr(terms, part) for part in parts) / terms.step_s for name, parts in CLASSES.items()}


def bottleneck(terms: StepTerms) -> str:
    """The class with the largest share."""
    found = shares(terms)
    return max(found, key=lambda name: found[name])


def message_costs(vector: Floats, conditions: Conditions, sizes: Floats) -> tuple[Floats, Floats]:
    """(latency, bandwidth) seconds of each message of so many bytes."""
    ranks = float(conditions.workers)
    if conditions.workers < 2:
        return np.zeros_like(sizes), np.zeros_like(sizes)
    alpha = vector[INDEX["alpha_s"]] + (conditions.latency_s or 0.0)
    beta = float(vector[INDEX["byte_s"]])
    if conditions.bandwidth is not None and conditions.hosts > 1:
        # The slower of the library and the link sets the pace.
        beta = max(beta, float(vector[INDEX["wire"]]) / conditions.bandwidth)
    start, carry = Wire(alpha_s=alpha, beta_s=0.0), Wire(alpha_s=0.0, beta_s=beta)
    if conditions.exchange == SERVER:
        servers = float(max(1, conditions.servers))
        latency = collectives.parameter_server(np.zeros_like(sizes), ranks, start, servers=servers)
        carried = collectives.parameter_server(sizes, ranks, carry, servers=servers)
    else:
        cost = ALGORITHMS[conditions.exchange]
        latency, carried = cost(np.zeros_like(sizes), ranks, start), cost(sizes, ranks, carry)
    return np.broadcast_to(latency, sizes.shape), np.broadcast_to(carried, sizes.shape)


def collective_s(vector: Floats, conditions: Conditions, sizes: Floats, operation: str) -> Floats:
    """Seconds of a collective by itself, for each size."""
    latency, carried = message_costs(vector, conditions, sizes)
    if operation in HALVES:
        return (latency + carried) / 2
    return latency + carried


HALVES = frozenset({"all_gather", "reduce_scatter"})
"""Operations that are half of an all-reduce."""


def step_terms(vector: Floats, conditions: Conditions, straggling: Straggling = ALIKE) -> StepTerms:
    """The step under these conditions."""
    at = INDEX
    batch, passes = conditions.batch, conditions.passes
    forward = float(vector[at["forward_s"]] + vector[at["forward_per_sample_s"]] * batch)
    backward = float(vector[at["backward_s"]] + vector[at["backward_per_sample_s"]] * batch)
    feeding = float(vector[at["input_s"]] + vector[at["input_per_sample_s"]] * batch) * passes
    slow = expected_slowest(conditions.workers, straggling.spread, straggling.slowest)
    unequal = (straggling.slowest - 1) / conditions.workers if conditions.workers > 1 else 0.0
    exchange, latency, exposed = 0.0, 0.0, 0.0
    if conditions.workers > 1 and conditions.messages:
        latencies, carried = message_costs(vector, conditions, conditions.sizes)
        costs = latencies + carried
        exchange, latency = float(costs.sum()), float(latencies.sum())
        exposed = _exposed(float(vector[at["start"]]), conditions, costs, backward * slow)
    hidden = exchange - exposed
    contention = float(vector[at["contention"]]) * hidden
    # What is exchanged every so many steps only shows in one of them: the mean step.
    exposed, exchange, latency, contention = (
        value / conditions.every for value in (exposed, exchange, latency, contention)
    )
    part = latency / exchange if exchange else 0.0
    busy = StepTerms(
        input_s=0.0, forward_s=forward * passes, backward_s=backward * passes,
        waiting_s=(slow - 1) * (forward + backward) * passes, contention_s=contention,
        latency_s=exposed * part, bandwidth_s=exposed * (1 - part),
        update_s=float(vector[at["update_s"]]), overhead_s=float(vector[at["overhead_s"]]), exchange_s=exchange,
        unequal=unequal,
    )  # fmt: skip
    return replace(busy, input_s=max(0.0, feeding - busy.step_s) if conditions.prefetch else feeding)


def _exposed(start: float, conditions: Conditions, costs: Floats, backward_s: float) -> float:
    if conditions.every > 1:
        # Weights are averaged after the step: nothing computes meanwhile.
        return float(costs.sum())
    if conditions.fractions is None:
        return max(0.0, float(costs.sum()) - (1 - start) * backward_s)
    ready = np.asarray(conditions.fractions) * backward_s
    return max(0.0, last_end(ready, costs) - backward_s)
