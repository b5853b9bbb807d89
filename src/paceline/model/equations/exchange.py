"""What messages cost among the ranks of these conditions, by the fitted latency and time of a byte. Pure."""

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
    """(seconds of a message, seconds of each of its bytes) from one rank to another."""
    alpha = float(vector[INDEX["alpha_s"]]) + (conditions.latency_s or 0.0)
    beta = float(vector[INDEX["byte_s"]])
    if conditions.bandwidth is not None and conditions.hosts > 1:
        # The slower of the library and the link sets the pace.
        beta = max(beta, float(vector[INDEX["wire"]]) / conditions.bandwidth * leaving(conditions))
    return alpha, beta


def leaving(conditions: Conditions) -> float:
    """The part of an exchange that leaves its host: with a server on each, one share of it goes to the own one."""
    return 1 - 1 / conditions.hosts if _at_home(conditions) else 1.0


def served_s(vector: Vector, conditions: Conditions) -> float:
    """What servers take from the cores of the workers beside them: no link and no backward pass hides it."""
    if not _at_home(conditions):
        return 0.0
    passing = conditions.exchanged * conditions.workers / conditions.servers
    return float(vector[INDEX["serving"]]) * passing


def _at_home(conditions: Conditions) -> bool:
    """Whether servers stand on the hosts of the workers, one on each."""
    return conditions.exchange == SERVER and conditions.servers >= conditions.hosts


def message_costs(vector: Vector, conditions: Conditions, sizes: Floats) -> tuple[Floats, Floats]:
    """(latency, bandwidth) seconds of each message of so many bytes."""
    ranks = float(conditions.workers)
    if conditions.workers < 2:
        return np.zeros_like(sizes), np.zeros_like(sizes)
    alpha, beta = neighbours(vector, conditions)
    start, carry = Wire(alpha_s=alpha, beta_s=0.0), Wire(alpha_s=0.0, beta_s=beta)
    # Every algorithm is a latency and a time of each byte, so one number of each does for all messages.
    if conditions.exchange == SERVER:
        servers = float(max(1, conditions.servers))
        latency = collectives.parameter_server(0.0, ranks, start, servers=servers)
        byte_s = collectives.parameter_server(1.0, ranks, carry, servers=servers)
    else:
        cost = ALGORITHMS[conditions.exchange]
        latency, byte_s = cost(0.0, ranks, start), cost(1.0, ranks, carry)
    return np.full(sizes.shape, float(latency)), sizes * float(byte_s)


def collective_s(vector: Vector, conditions: Conditions, sizes: Floats, operation: str) -> Floats:
    """Seconds of a collective by itself, for each size."""
    latency, carried = message_costs(vector, conditions, sizes)
    if operation in HALVES:
        return (latency + carried) / 2
    return latency + carried
