"""Communication of a step with unequal hosts and shared links, by event simulation. Pure.

Equally slow hosts form one class, represented by its slowest worker, because a message waits for the slowest worker.
With one class and unshared links the result equals that of `strategies`; a test compares the two.
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
    """Slowness of each host relative to an ordinary host."""
    given = conditions.slowness
    if not given:
        return [1.0] * conditions.hosts
    if conditions.repeating:
        return [given[host % len(given)] for host in range(conditions.hosts)]
    return [*given[: conditions.hosts], *([1.0] * (conditions.hosts - len(given)))]


def slowest_of_classes(conditions: Conditions, straggling: Straggling) -> list[float]:
    """Compute time of the slowest worker of each class of hosts, relative to the mean of an ordinary worker."""
    per_host = -(-conditions.workers // conditions.hosts)
    workers: Counter[float] = Counter()
    left = conditions.workers
    for slowness in host_slowness(conditions):
        workers[slowness] += min(per_host, left)
        left -= min(per_host, left)
    workers = +workers
    usual = max(workers, key=lambda slowness: workers[slowness])
    return [
        # A permanently slow worker is assumed to be in the largest class.
        slowness * expected_slowest(count, straggling.spread, straggling.slowest if slowness == usual else 1.0)
        for slowness, count in workers.items()
    ]


def simulated_exchange(
    vector: Vector, conditions: Conditions, forward_s: float, backward_s: float, straggling: Straggling
) -> tuple[float, Shown]:
    """(relative compute time of the slowest worker, communication) for averaged gradients.

    Args:
        forward_s: Seconds per forward pass of an ordinary worker.
        backward_s: Seconds per backward pass of an ordinary worker.
    """
    factors = slowest_of_classes(conditions, straggling)
    slow = max(factors)
    if conditions.workers < 2 or not conditions.messages:
        return slow, Shown()
    latencies, carried = message_costs(vector, conditions, conditions.sizes)
    # Messages within one host cross no shared link.
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
    # Time added by shared links is hidden or exposed like the rest; none of it is latency.
    total = max(latency + float(carried.sum()) + served, exposed)
    return slow, Shown(total_s=total, exposed_s=exposed, latent=latency / total if total else 0.0)


def _ready(vector: Vector, conditions: Conditions) -> Floats:
    """Fraction of the backward pass after which each message may start."""
    if conditions.every > 1:
        return np.ones(len(conditions.messages))
    if conditions.fractions is None:
        return np.full(len(conditions.messages), float(vector[INDEX["start"]]))
    return np.asarray(conditions.fractions)
