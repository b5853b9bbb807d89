"""How long the slowest of P workers takes, and how unequal workers were seen to be. Pure.

Workers differ in two ways: some are slower for good (another machine, a busy neighbour), and each is slower in some
steps than in others. Every synchronous step waits for the slowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri

from paceline.model.step import Floats

NODES = 64
"""Of the quadrature below: the mean of the largest of 4096 draws is then right to five digits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggling:
    """How unequal workers are, relative to their mean."""

    spread: float
    """Standard deviation of the logarithm of a worker's computing time from step to step."""
    persistence: float
    """Correlation of that from one step to the next."""
    slowest: float
    """The slowest worker's mean over that of all: 1 where they are alike."""


ALIKE = Straggling(spread=0.0, persistence=0.0, slowest=1.0)


def expected_slowest(workers: int, spread: float) -> float:
    """Mean of the largest of so many draws of a log-normal factor of mean 1.

    E[max] = ∫ F⁻¹(u^(1/P)) du, by Gauss and Legendre: exact where Blom's quantile is an approximation, and as cheap.
    """
    if workers <= 1 or spread <= 0:
        return 1.0
    at, weight = _quadrature()
    with np.errstate(divide="ignore"):
        draws = ndtri(at ** (1.0 / workers))
    return float((weight * np.exp(spread * draws - spread**2 / 2)).sum())


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights on 0 … 1, denser at both ends, where the quantiles of a normal grow without bound."""
    at, weight = np.polynomial.legendre.leggauss(NODES)
    # u = sin²(θ), θ = π(x + 1)/4
    angle = np.pi * (at + 1) / 4
    return np.sin(angle) ** 2, weight * np.pi / 4 * np.sin(2 * angle)


def straggling_of(computing_s: Floats) -> Straggling:
    """Estimated from computing times, one row a worker and one column a step."""
    workers, steps = computing_s.shape
    if steps < 3 or not (computing_s > 0).all():
        return ALIKE
    logs = np.log(computing_s)
    # What all workers have in common in a step (a longer sequence, a busy machine) lets nobody wait.
    own = logs - logs.mean(axis=0) if workers > 1 else logs
    lasting = own.mean(axis=1)
    passing = own - lasting[:, None]
    # Deviations from a mean of P workers and of T steps are smaller than those from the truth.
    share = (1 - 1 / workers if workers > 1 else 1.0) * (1 - 1 / steps)
    spread = float(np.sqrt((passing**2).mean() / share))
    persistence = 0.0
    if spread > 0:
        products = (passing[:, 1:] * passing[:, :-1]).mean() / (passing**2).mean()
        persistence = float(np.clip(products, -1.0, 1.0))
    means = computing_s.mean(axis=1)
    slowest = float(means.max() / means.mean()) if workers > 1 else 1.0
    return Straggling(
        spread=spread, persistence=persistence, slowest=_beyond_chance(slowest, spread, persistence, steps, workers)
    )


def _beyond_chance(slowest: float, spread: float, persistence: float, steps: int, workers: int) -> float:
    """1 where workers that are alike would, by chance, have means as unequal as these."""
    if workers < 2:
        return 1.0
    kept = min(max(persistence, 0.0), 0.99)
    effective = max(1.0, steps * (1 - kept) / (1 + kept))
    chance = expected_slowest(workers, spread / np.sqrt(effective))
    return slowest if slowest > 1 + 2 * (chance - 1) + 1e-9 else 1.0
