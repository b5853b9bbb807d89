"""The cost of messages under given conditions, from the fitted latency and time per byte. Pure."""

from __future__ import annotations

import numpy as np

from paceline.model.equations import collectives
from paceline.model.equations.arrays import Bools, Floats
from paceline.model.equations.collectives import Wire
from paceline.model.equations.parameters import values_of
from paceline.model.equations.stack import Stack
from paceline.plan.vocabulary import HALVING, RING, SERVER, TREE

ALGORITHMS = {RING: collectives.ring, TREE: collectives.tree, HALVING: collectives.halving_doubling}
HALVES = frozenset({"all_gather", "reduce_scatter"})
"""Operations that are half of an all-reduce."""


def neighbours(vectors: Floats, stack: Stack) -> tuple[Floats, Floats]:
    """(seconds per message, seconds per byte) from one rank to another."""
    alpha: Floats = values_of(vectors, "alpha_s") + stack.latency_s
    # The slower of library and link is the limit.
    link = values_of(vectors, "wire") / stack.bandwidth * _leaving(stack)
    return alpha, np.maximum(values_of(vectors, "byte_s"), link)


def _leaving(stack: Stack) -> Floats:
    """Fraction of an exchange that leaves its host: with a server on each host, one share stays local."""
    return np.where(_at_home(stack), 1 - 1 / stack.hosts, 1.0)


def served_s(vectors: Floats, stack: Stack) -> Floats:
    """CPU time that local servers take from the workers; nothing hides it."""
    passing = np.where(_at_home(stack), stack.exchanged * stack.workers / stack.servers, 0.0)
    seconds: Floats = values_of(vectors, "serving") * passing
    return seconds


def _at_home(stack: Stack) -> Bools:
    """Whether each worker host has its own server."""
    return (stack.servers >= stack.hosts) & (stack.exchange == SERVER)


def message_costs(vectors: Floats, stack: Stack) -> tuple[Floats, Floats]:
    """(latency, bandwidth) seconds of each message."""
    alpha, beta = neighbours(vectors, stack)
    start, carry = Wire(alpha_s=alpha, beta_s=0.0), Wire(alpha_s=0.0, beta_s=beta)
    # Every algorithm has one latency and one time per byte, which hold for all messages.
    if stack.exchange == SERVER:
        latency = collectives.parameter_server(0.0, stack.workers, start, servers=stack.servers)
        byte_s = collectives.parameter_server(1.0, stack.workers, carry, servers=stack.servers)
    else:
        cost = ALGORITHMS[stack.exchange]
        latency, byte_s = cost(0.0, stack.workers, start), cost(1.0, stack.workers, carry)
    carried = stack.sizes * np.asarray(byte_s)[..., None]
    return np.broadcast_to(np.asarray(latency)[..., None], carried.shape), carried


def collective_s(vectors: Floats, stack: Stack, operation: str) -> Floats:
    """Seconds of stand-alone collectives, for each message size of the stack."""
    latency, carried = message_costs(vectors, stack)
    seconds: Floats = latency + carried
    return seconds / 2 if operation in HALVES else seconds
