"""The time of the slowest of P workers, and the measured inequality of workers. Pure.

Workers differ in two ways: some are permanently slower (another machine, a busy neighbour), and each varies from step
to step. Every synchronous step waits for the slowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import erfc, sqrt
from statistics import NormalDist

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.record.lockstep import RankTimes

NODES = 64
"""Nodes of the quadrature below: five correct digits for the mean of the largest of 4096 draws."""
STANDARD = NormalDist()
"""Standard normal from the standard library; SciPy's takes longer to import than a prediction may take."""
REACH, POINTS = 8.0, 2001
"""Range of the other integral in standard deviations on both sides, and its number of points."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggling:
    """How unequal workers are, relative to their mean."""

    spread: float
    """Standard deviation of the logarithm of a worker's compute time between steps."""
    persistence: float
    """Correlation of this variation from one step to the next."""
    slowest: float
    """Mean compute time of a permanently slow worker relative to the others; 1 if there is none."""


MOST_PERSISTENT = 0.99
BEYOND_CHANCE = 3.0
"""A worker is called slow if it lags by this many times what chance would explain."""
ALIKE = Straggling(spread=0.0, persistence=0.0, slowest=1.0)


@cache
def expected_slowest(workers: int, spread: float, slowest: float = 1.0) -> float:
    """Mean of the largest of `workers` log-normal factors of mean 1, one of which is `slowest` times as large.

    E[max] = ∫ F⁻¹(u^(1/P)) du by Gauss-Legendre quadrature, which is as cheap as Blom's quantile and more accurate.
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
    return np.array([erfc(-value / sqrt(2)) / 2 for value in at])


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1], denser at both ends, where normal quantiles grow without bound."""
    at, weight = np.polynomial.legendre.leggauss(NODES)
    # u = sin²(θ), θ = π(x + 1)/4
    angle = np.pi * (at + 1) / 4
    return np.sin(angle) ** 2, weight * np.pi / 4 * np.sin(2 * angle)


def straggling_of(compute: RankTimes) -> Straggling:
    """Estimate straggling from the compute times of every worker in every step."""
    if compute.variance is None:
        return ALIKE
    workers, steps, variance = len(compute.means_s), compute.n_steps, compute.variance
    persistence = 0.0
    if variance > 0:
        products = compute.lagged / variance
        # Correct the bias of a correlation estimated from few steps (Kendall 1954).
        persistence = float(np.clip(products + (1 + 3 * products) / steps, 0.0, MOST_PERSISTENT))
    # Deviations from an estimated mean are smaller than deviations from the true mean.
    independent = max(2.0, steps * (1 - persistence) / (1 + persistence))
    share = (1 - 1 / workers if workers > 1 else 1.0) * (1 - 1 / independent)
    spread = float(np.sqrt(variance / share))
    return Straggling(spread=spread, persistence=persistence, slowest=_slowest(compute, spread, independent))


def _slowest(compute: RankTimes, spread: float, independent: float) -> float:
    """The slowest worker's mean relative to the others; 1 if chance explains the difference."""
    workers = len(compute.means_s)
    if workers < 2:
        return 1.0
    ratio = _over_others(max(compute.means_s) / compute.mean_s, workers)
    chance = _over_others(expected_slowest(workers, spread / float(np.sqrt(independent))), workers)
    return ratio if ratio > 1 + BEYOND_CHANCE * (chance - 1) + 1e-9 else 1.0


def _over_others(over_all: float, workers: int) -> float:
    """Convert a worker's time relative to the mean of all workers into one relative to the others."""
    return over_all * (workers - 1) / max(workers - over_all, 1e-9)
