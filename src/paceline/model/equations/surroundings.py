"""Hosts that differ and links that are shared: the exchange of a step by event simulation. Pure.

Hosts that are equally slow are one class, whose slowest worker stands for it: a message waits for the slowest of each.
With one class and links of one's own, the simulation says what `strategies` says; a test holds the two together.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import message_costs, served_s
from paceline.model.equations.parameters import INDEX, Vector
from paceline.model.equations.simulate import Crowd, synchronous_step
from paceline.model.equations.step import Floats, Messages, Profile
from paceline.model.equations.stragglers import Straggling, expected_slowest
from paceline.model.equations.strategies import Shown


def host_slowness(conditions: Conditions) -> list[float]:
    """Of each host, relative to a usual one."""
    given = conditions.slowness
    if not given:
        return [1.0] * conditions.hosts
    if conditions.repeating:
        return [given[host % len(given)] for host in range(conditions.hosts)]
    return [*given[: conditions.hosts], *([1.0] * (conditions.hosts - len(given)))]


def slowest_of_classes(conditions: Conditions, straggling: Straggling) -> list[float]:
    """For each class of equally slow hosts, how much longer its slowest worker computes than a usual worker's mean."""
    per_host = -(-conditions.workers // conditions.hosts)
    workers: Counter[float] = Counter()
    left = conditions.workers
    for slowness in host_slowness(conditions):
        workers[slowness] += min(per_host, left)
        left -= min(per_host, left)
    workers = +workers
    usual = max(workers, key=lambda slowness: workers[slowness])
    return [
        # A worker that was seen to lag for good lags in the largest class.
        slowness * expected_slowest(count, straggling.spread, straggling.slowest if slowness == usual else 1.0)
        for slowness, count in workers.items()
    ]


def simulated_exchange(
    vector: Vector, conditions: Conditions, forward_s: float, backward_s: float, straggling: Straggling
) -> tuple[float, Shown]:
    """(how much longer the slowest worker computes, the exchange and what of it shows) of gradients that are averaged.

    Args:
        forward_s: of one pass of a usual worker.
        backward_s: as well.
    """
    factors = slowest_of_classes(conditions, straggling)
    slow = max(factors)
    if conditions.workers < 2 or not conditions.messages:
        return slow, Shown()
    latencies, carried = message_costs(vector, conditions, conditions.sizes)
    # What is sent to the same host crosses no link that others use.
    crowd = Crowd(jobs=conditions.jobs, oversubscription=conditions.oversubscription) if conditions.hosts > 1 else None
    ready = Messages(ready_s=_ready(vector, conditions) * backward_s, sizes=conditions.sizes)
    before = (conditions.passes - 1) * (forward_s + backward_s) + forward_s
    work = Profile(
        forward_s=np.array([before]), backward_s=np.array([backward_s]), gradient_bytes=np.array([conditions.exchanged])
    )
    step = synchronous_step(work, ready, carried, factors, latencies_s=latencies, crowd=crowd)
    computed = slow * (before + backward_s)
    served = served_s(vector, conditions)
    exposed = max(0.0, step - computed) + served
    latency = float(latencies.sum())
    # What a crowd adds shows or is hidden as the rest; none of it is latency.
    total = max(latency + float(carried.sum()) + served, exposed)
    return slow, Shown(total_s=total, exposed_s=exposed, latent=latency / total if total else 0.0)


def _ready(vector: Vector, conditions: Conditions) -> Floats:
    """How much of the backward pass is over when each message may start."""
    if conditions.every > 1:
        return np.ones(len(conditions.messages))
    if conditions.fractions is None:
        return np.full(len(conditions.messages), float(vector[INDEX["start"]]))
    return np.asarray(conditions.fractions)
