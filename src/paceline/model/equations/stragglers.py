"""How long the slowest of P workers takes, and how unequal workers were seen to be. Pure.

Workers differ in two ways: some are slower for good (another machine, a busy neighbour), and each is slower in some
steps than in others. Every synchronous step waits for the slowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np

from paceline.model.equations.step import Floats
from paceline.record.lockstep import RankTimes

NODES = 64
"""Of the quadrature below: the mean of the largest of 4096 draws is then right to five digits."""
STANDARD = NormalDist()
"""Of the standard library: SciPy's takes longer to load than a prediction may take."""
REACH, POINTS = 8.0, 2001
"""Standard deviations that the other integral covers on both sides, and where it looks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggling:
    """How unequal workers are, relative to their mean."""

    spread: float
    """Standard deviation of the logarithm of a worker's computing time from step to step."""
    persistence: float
    """Correlation of that from one step to the next."""
    slowest: float
    """One worker's mean over that of the others, where it is slower for good: 1 where they are alike."""


MOST_PERSISTENT = 0.99
BEYOND_CHANCE = 3.0
"""By so many times what is usual by chance must a worker lag to be called slow."""
ALIKE = Straggling(spread=0.0, persistence=0.0, slowest=1.0)


@cache
def expected_slowest(workers: int, spread: float, slowest: float = 1.0) -> float:
    """Mean of the largest of so many draws of a log-normal factor of mean 1, one of which is `slowest` times as large.

    E[max] = ∫ F⁻¹(u^(1/P)) du, by Gauss and Legendre: exact where Blom's quantile is an approximation, and as cheap.
    """
    if workers <= 1:
        return 1.0
    if spread <= 0:
        return slowest
    if slowest > 1:
        return _one_slower(workers, spread, slowest)
    at, weight = _quadrature()
    draws = np.array([STANDARD.inv_cdf(part) for part in at ** (1.0 / workers)])
    return float((weight * np.exp(spread * draws - spread**2 / 2)).sum())


def _one_slower(workers: int, spread: float, slowest: float) -> float:
    """E[max] = highest − ∫ F(x / slowest) · F(x)^(P − 1) dx."""
    shift = np.log(slowest)
    logs = np.linspace(-REACH * spread, shift + REACH * spread, POINTS)
    below = _normal((logs - shift) / spread + spread / 2) * _normal(logs / spread + spread / 2) ** (workers - 1)
    factor = np.exp(logs)
    return float(factor[-1] - ((below[1:] + below[:-1]) / 2 * np.diff(factor)).sum())


def _normal(at: Floats) -> Floats:
    return np.array([erfc(-one / sqrt(2)) / 2 for one in at])


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights on 0 … 1, denser at both ends, where the quantiles of a normal grow without bound."""
    at, weight = np.polynomial.legendre.leggauss(NODES)
    # u = sin²(θ), θ = π(x + 1)/4
    angle = np.pi * (at + 1) / 4
    return np.sin(angle) ** 2, weight * np.pi / 4 * np.sin(2 * angle)


def straggling_of(computing: RankTimes) -> Straggling:
    """Estimated from the computing times of every worker in every step."""
    if computing.variance is None:
        return ALIKE
    workers, steps, variance = len(computing.means_s), computing.n_steps, computing.variance
    persistence = 0.0
    if variance > 0:
        products = computing.lagged / variance
        # A correlation that is measured from the mean of so few steps is too small by this (Kendall 1954).
        persistence = float(np.clip(products + (1 + 3 * products) / steps, 0.0, MOST_PERSISTENT))
    # Deviations from a mean of P workers and of T steps are smaller than those from the truth.
    independent = max(2.0, steps * (1 - persistence) / (1 + persistence))
    share = (1 - 1 / workers if workers > 1 else 1.0) * (1 - 1 / independent)
    spread = float(np.sqrt(variance / share))
    return Straggling(spread=spread, persistence=persistence, slowest=_slowest(computing, spread, independent))


def _slowest(computing: RankTimes, spread: float, independent: float) -> float:
    """One worker's mean over that of the others; 1 where workers that are alike would differ as much by chance."""
    workers = len(computing.means_s)
    if workers < 2:
        return 1.0
    found = _over_others(max(computing.means_s) / computing.mean_s, workers)
    chance = _over_others(expected_slowest(workers, spread / float(np.sqrt(independent))), workers)
    return found if found > 1 + BEYOND_CHANCE * (chance - 1) + 1e-9 else 1.0


def _over_others(over_all: float, workers: int) -> float:
    """A worker's time over the mean of the others, from that over the mean of all."""
    return over_all * (workers - 1) / max(workers - over_all, 1e-9)
