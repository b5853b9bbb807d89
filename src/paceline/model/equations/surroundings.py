"""Communication of a step with unequal hosts and shared links, by event simulation. Pure.

Equally slow hosts form one class, represented by its slowest worker, because a message waits for the slowest worker.
With one class and unshared links the result equals that of `strategies`; a test compares the two.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import message_costs, served_s
from paceline.model.equations.parameters import values_of
from paceline.model.equations.simulate import Crowd, Job, synchronous_step
from paceline.model.equations.stack import Stack
from paceline.model.equations.stragglers import Straggling, expected_slowest
from paceline.model.equations.strategies import Shown, part_of


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
    full_hosts, left = divmod(conditions.workers, per_host)
    hosts = host_slowness(conditions)
    workers = {slowness: count * per_host for slowness, count in Counter(hosts[:full_hosts]).items()}
    if left:
        workers[hosts[full_hosts]] = workers.get(hosts[full_hosts], 0) + left
    usual = max(workers, key=lambda slowness: workers[slowness])
    return [
        # A permanently slow worker is assumed to be in the largest class.
        slowness * expected_slowest(count, straggling.spread, straggling.slowest if slowness == usual else 1.0)
        for slowness, count in workers.items()
    ]


def simulated_exchange(
    vectors: Floats, stack: Stack, forward_s: Floats, backward_s: Floats, straggling: Straggling
) -> tuple[Floats, Shown]:
    """(relative compute time of the slowest worker, communication) for averaged gradients.

    Args:
        forward_s: Seconds per forward pass of an ordinary worker.
        backward_s: Seconds per backward pass of an ordinary worker.
    """
    factors = [tuple(slowest_of_classes(conditions, straggling)) for conditions in stack.rows]
    slow = np.array([[max(of_host) for of_host in factors]]).T
    if not stack.exchanges:
        return slow, Shown()
    latencies, carried = message_costs(vectors, stack)
    before = (stack.passes - 1) * (forward_s + backward_s) + forward_s
    ready = _ready(vectors, stack) * backward_s[..., None]
    step_s = np.empty_like(before)
    for row, column in np.ndindex(step_s.shape):
        at = row, column
        job = Job(
            before_s=float(before[at]),
            backward_s=float(backward_s[at]),
            ready_s=ready[at],
            latencies_s=latencies[at],
            carried_s=carried[at],
            slowness=factors[row],
        )
        step_s[at] = synchronous_step(job, _crowd(stack.rows[row]))
    served = served_s(vectors, stack)
    exposed = np.maximum(0.0, step_s - slow * (before + backward_s)) + served
    latency = latencies.sum(axis=-1)
    # Time added by shared links is hidden or exposed like the rest; none of it is latency.
    total = np.maximum(latency + carried.sum(axis=-1) + served, exposed)
    return slow, Shown(total_s=total, exposed_s=exposed, latent=part_of(latency, total))


def _crowd(conditions: Conditions) -> Crowd | None:
    """Who shares the links between hosts; messages within one host cross no shared link."""
    if conditions.hosts == 1:
        return None
    return Crowd(jobs=conditions.jobs, oversubscription=conditions.oversubscription)


def _ready(vectors: Floats, stack: Stack) -> Floats:
    """Fraction of the backward pass after which each message may start."""
    if not stack.overlaps:
        return np.ones_like(stack.sizes)
    if stack.fractions is None:
        start = values_of(vectors, "start")
        return np.broadcast_to(start[:, None], (len(start), stack.sizes.shape[-1]))
    return stack.fractions
