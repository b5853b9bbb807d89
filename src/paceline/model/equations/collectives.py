"""The time of a collective among P ranks, by algorithm. Pure; works on numbers and arrays.

A message costs α seconds to start, β seconds per byte to send and γ seconds per byte to reduce, as in Hockney's and
LogP's models. The form of each algorithm is that of Thakur, Rabenseifner and Gropp (2005), "Optimization of collective
communication operations in MPICH".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Number = float | npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """The cost of a message on a link."""

    alpha_s: Number
    """Seconds to start a message."""
    beta_s: Number
    """Seconds per byte to send it: one over the bandwidth."""
    gamma_s: Number = 0.0
    """Seconds per byte to reduce it."""


def ring(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce around a ring: reduce-scatter, then all-gather, P − 1 messages of m/P bytes each."""
    turns = ranks - 1
    part = turns / ranks * size
    return 2 * turns * wire.alpha_s + 2 * part * wire.beta_s + part * wire.gamma_s


def halving_doubling(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce by recursive halving and doubling; ranks beyond a power of two send their data to a neighbour."""
    part = (ranks - 1) / ranks * size
    plain = 2 * _rounds(ranks) * wire.alpha_s + 2 * part * wire.beta_s + part * wire.gamma_s
    return plain + _is_uneven(ranks) * (2 * wire.alpha_s + 2 * size * wire.beta_s + size * wire.gamma_s)


def tree(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce as a reduction to a root and a broadcast from it, along binomial trees."""
    return _rounds(ranks) * (2 * wire.alpha_s + size * (2 * wire.beta_s + wire.gamma_s))


def parameter_server(size: Number, ranks: Number, wire: Wire, *, servers: Number, worker: Wire | None = None) -> Number:
    """Push and pull through servers; each server's link carries P/s times the bytes of a worker."""
    own = (worker or wire).beta_s
    # A single rank is its own server and sends nothing.
    return np.where(
        np.asarray(ranks) > 1, 2 * wire.alpha_s + 2 * size * np.maximum(ranks / servers * wire.beta_s, own), 0.0
    )


def _rounds(ranks: Number) -> Number:
    rounds: Number = np.ceil(np.log2(ranks))
    return rounds


def _is_uneven(ranks: Number) -> Number:
    """1 if the number of ranks is not a power of two, otherwise 0."""
    return np.where(np.log2(ranks) % 1 > 0, 1.0, 0.0)
