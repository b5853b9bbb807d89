"""The cost of messages under given conditions, from the fitted latency and time per byte. Pure."""

from __future__ import annotations

import numpy as np

from paceline.model.equations import collectives
from paceline.model.equations.collectives import Wire
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import INDEX, Vector
from paceline.model.equations.step import Floats
from paceline.plan.vocabulary import HALVING, RING, SERVER, TREE

ALGORITHMS = {RING: collectives.ring, TREE: collectives.tree, HALVING: collectives.halving_doubling}
HALVES = frozenset({"all_gather", "reduce_scatter"})
"""Operations that are half of an all-reduce."""


def neighbours(vector: Vector, conditions: Conditions) -> tuple[float, float]:
    """(seconds per message, seconds per byte) from one rank to another."""
    alpha = float(vector[INDEX["alpha_s"]]) + (conditions.latency_s or 0.0)
    beta = float(vector[INDEX["byte_s"]])
    if conditions.bandwidth is not None and conditions.hosts > 1:
        # The slower of library and link is the limit.
        beta = max(beta, float(vector[INDEX["wire"]]) / conditions.bandwidth * leaving(conditions))
    return alpha, beta


def leaving(conditions: Conditions) -> float:
    """Fraction of an exchange that leaves its host: with a server on each host, one share stays local."""
    return 1 - 1 / conditions.hosts if _at_home(conditions) else 1.0


def served_s(vector: Vector, conditions: Conditions) -> float:
    """CPU time that local servers take from the workers; nothing hides it."""
    if not _at_home(conditions):
        return 0.0
    passing = conditions.exchanged * conditions.workers / conditions.servers
    return float(vector[INDEX["serving"]]) * passing


def _at_home(conditions: Conditions) -> bool:
    """Whether each worker host has its own server."""
    return conditions.exchange == SERVER and conditions.servers >= conditions.hosts


def message_costs(vector: Vector, conditions: Conditions, sizes: Floats) -> tuple[Floats, Floats]:
    """(latency, bandwidth) seconds of each message, for these sizes in bytes."""
    ranks = float(conditions.workers)
    if conditions.workers < 2:
        return np.zeros_like(sizes), np.zeros_like(sizes)
    alpha, beta = neighbours(vector, conditions)
    start, carry = Wire(alpha_s=alpha, beta_s=0.0), Wire(alpha_s=0.0, beta_s=beta)
    # Every algorithm has one latency and one time per byte, which hold for all messages.
    if conditions.exchange == SERVER:
        servers = float(max(1, conditions.servers))
        latency = collectives.parameter_server(0.0, ranks, start, servers=servers)
        byte_s = collectives.parameter_server(1.0, ranks, carry, servers=servers)
    else:
        cost = ALGORITHMS[conditions.exchange]
        latency, byte_s = cost(0.0, ranks, start), cost(1.0, ranks, carry)
    return np.full(sizes.shape, float(latency)), sizes * float(byte_s)


def collective_s(vector: Vector, conditions: Conditions, sizes: Floats, operation: str) -> Floats:
    """Seconds of a stand-alone collective, for each size."""
    latency, carried = message_costs(vector, conditions, sizes)
    if operation in HALVES:
        return (latency + carried) / 2
    return latency + carried
