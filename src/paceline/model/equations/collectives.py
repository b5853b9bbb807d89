"""How long a collective takes among P ranks, by algorithm. Pure; works on numbers and on arrays alike.

A message costs α seconds to start, β seconds a byte to carry and γ seconds a byte to reduce, as in Hockney's and LogP's
models; the forms of each algorithm are those of Thakur, Rabenseifner and Gropp (2005), "Optimization of collective
communication operations in MPICH".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Number = float | npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """What one message costs on a link."""

    alpha_s: Number
    """To start it."""
    beta_s: Number
    """A byte to carry it: one over the bandwidth."""
    gamma_s: Number = 0.0
    """A byte to reduce it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hosts:
    """Ranks in groups that share a host, and the links inside and between hosts."""

    per_host: Number
    inside: Wire
    between: Wire


def ring(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce around a ring: reduce-scatter, then all-gather, P − 1 messages of m/P bytes each."""
    turns = ranks - 1
    part = turns / ranks * size
    return 2 * turns * wire.alpha_s + 2 * part * wire.beta_s + part * wire.gamma_s


def halving_doubling(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce by recursive halving, then doubling; ranks beyond a power of two hand theirs to a neighbour."""
    part = (ranks - 1) / ranks * size
    plain = 2 * _rounds(ranks) * wire.alpha_s + 2 * part * wire.beta_s + part * wire.gamma_s
    return plain + _is_uneven(ranks) * (2 * wire.alpha_s + 2 * size * wire.beta_s + size * wire.gamma_s)


def recursive_doubling(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce in which everybody exchanges everything ⌈log₂ P⌉ times: best for small messages."""
    return _rounds(ranks) * (wire.alpha_s + size * (wire.beta_s + wire.gamma_s))


def tree(size: Number, ranks: Number, wire: Wire) -> Number:
    """All-reduce as a reduction to a root and a broadcast from it, along binomial trees."""
    return _rounds(ranks) * (2 * wire.alpha_s + size * (2 * wire.beta_s + wire.gamma_s))


def hierarchical(size: Number, ranks: Number, hosts: Hosts) -> Number:
    """All-reduce inside each host first, then among hosts on the part that each rank of a host holds, then back."""
    group = np.minimum(hosts.per_host, ranks)
    outside = np.ceil(ranks / group)
    inner, outer = hosts.inside, hosts.between
    within = 2 * (group - 1) * inner.alpha_s + (group - 1) / group * size * (2 * inner.beta_s + inner.gamma_s)
    held = size / group
    among = 2 * (outside - 1) * outer.alpha_s + (outside - 1) / outside * held * (2 * outer.beta_s + outer.gamma_s)
    return within + among


def parameter_server(size: Number, ranks: Number, wire: Wire, *, servers: Number, worker: Wire | None = None) -> Number:
    """Push and pull: every worker's bytes pass the servers' links, which carry P/s times as much each."""
    own = (worker or wire).beta_s
    # One rank that is its own server sends nothing.
    return np.where(
        np.asarray(ranks) > 1, 2 * wire.alpha_s + 2 * size * np.maximum(ranks / servers * wire.beta_s, own), 0.0
    )


def reduce_scatter(size: Number, ranks: Number, wire: Wire) -> Number:
    """The first half of a ring."""
    turns = ranks - 1
    return turns * wire.alpha_s + turns / ranks * size * (wire.beta_s + wire.gamma_s)


def all_gather(size: Number, ranks: Number, wire: Wire) -> Number:
    """The second half of a ring; `size` is what everybody holds in the end."""
    turns = ranks - 1
    return turns * wire.alpha_s + turns / ranks * size * wire.beta_s


def broadcast(size: Number, ranks: Number, wire: Wire) -> Number:
    """Along a binomial tree."""
    return _rounds(ranks) * (wire.alpha_s + size * wire.beta_s)


Algorithm = Callable[[Number, Number, Wire], Number]
ALL_REDUCE: dict[str, Algorithm] = {
    "ring": ring,
    "halving-doubling": halving_doubling,
    "recursive-doubling": recursive_doubling,
    "tree": tree,
}


def _rounds(ranks: Number) -> Number:
    rounds: Number = np.ceil(np.log2(ranks))
    return rounds


def _is_uneven(ranks: Number) -> Number:
    """1 where the ranks are no power of two."""
    return np.where(np.log2(ranks) % 1 > 0, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Segments:
    """Time against size as straight lines between knots: what one library, algorithm and number of ranks were measured
    to take. Below the first knot and above the last the outer lines go on.
    """

    sizes: npt.NDArray[np.float64]
    """Ascending, at least two."""
    seconds: npt.NDArray[np.float64]

    def __call__(self, size: Number) -> Number:
        index = np.clip(np.searchsorted(self.sizes, size) - 1, 0, len(self.sizes) - 2)
        width = self.sizes[index + 1] - self.sizes[index]
        slope = (self.seconds[index + 1] - self.seconds[index]) / width
        found: Number = self.seconds[index] + slope * (size - self.sizes[index])
        # The first line may point below zero for an empty message.
        return np.maximum(found, 0.0)
