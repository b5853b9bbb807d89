"""Models that others published, fitted on the same points as ours: what a prediction must beat.

All are fitted to relative errors, as they are judged, and say a step time for workers, hosts and a batch a worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares, nnls

from paceline.model.step import Floats
from paceline.model.tables import Point

TINY = 1e-9
STARTS = 8
"""Of a fit that may end in a poor valley; the best end counts."""


class Predictor(ABC):
    """Fits step times of some configurations and predicts others."""

    name: str

    @abstractmethod
    def fit(self, points: Sequence[Point]) -> None:
        """Learn from these."""

    @abstractmethod
    def predict(self, points: Sequence[Point]) -> Floats:
        """Seconds of a step of each; looks at workers, hosts and batch only."""


def columns(points: Sequence[Point]) -> tuple[Floats, Floats, Floats]:
    """Workers, hosts, batch."""
    told = np.array([(point.workers, point.hosts, point.batch) for point in points], dtype=float)
    return told[:, 0], told[:, 1], told[:, 2]


def times(points: Sequence[Point]) -> Floats:
    return np.array([point.step_s for point in points])


class Ernest(Predictor):
    """T = θ₀ + θ₁·work/P + θ₂·P + θ₃·log P, none below zero (Venkataraman et al. 2016). A worker's share of the work is
    its batch.
    """

    name = "ernest"

    def fit(self, points: Sequence[Point]) -> None:
        seconds = times(points)
        self._theta, _ = nnls(self._features(points) / seconds[:, None], np.ones(len(points)))

    def predict(self, points: Sequence[Point]) -> Floats:
        return self._features(points) @ self._theta

    @staticmethod
    def _features(points: Sequence[Point]) -> Floats:
        workers, _, batch = columns(points)
        return np.stack([np.ones_like(workers), batch, workers, np.log(workers)], axis=1)


class Curved(Predictor):
    """A form with parameters that must be searched for, in their logarithms, so that none falls below zero."""

    @abstractmethod
    def starts(self, points: Sequence[Point]) -> list[Floats]:
        """Where searches begin."""

    @abstractmethod
    def form(self, parameters: Floats, points: Sequence[Point]) -> Floats:
        """Seconds of a step."""

    def fit(self, points: Sequence[Point]) -> None:
        seconds = np.log(times(points))

        def off(logs: Floats) -> Floats:
            return np.log(np.maximum(self.form(np.exp(logs), points), TINY)) - seconds

        ends = [least_squares(off, np.log(np.maximum(start, TINY)), max_nfev=2000) for start in self.starts(points)]
        self._parameters = np.exp(min(ends, key=lambda end: end.cost).x)

    def predict(self, points: Sequence[Point]) -> Floats:
        return self.form(self._parameters, points)


class Pollux(Curved):
    """T = (T_grad^γ + T_sync^γ)^(1/γ); T_grad = α + β·batch; T_sync = α' + β'·max(P − 2, 0), apart inside a host and
    between hosts; 1 ≤ γ ≤ 10 (Qiao et al. 2021).
    """

    name = "pollux"

    def starts(self, points: Sequence[Point]) -> list[Floats]:
        middle = float(np.median(times(points)))
        batch = float(np.median(columns(points)[2]))
        generator = np.random.default_rng(0)
        first = np.array([middle / 4, middle / 2 / batch, middle / 10, middle / 100, middle / 5, middle / 100, 1.0])
        return [first * np.exp(generator.normal(0, 1, 7)) for _ in range(STARTS)]

    def form(self, parameters: Floats, points: Sequence[Point]) -> Floats:
        alpha, beta, inside, inside_more, between, between_more, bend = parameters
        gamma = 1 + 9 * bend / (1 + bend)
        workers, hosts, batch = columns(points)
        more = np.maximum(workers - 2, 0)
        sync = np.where(hosts > 1, between + between_more * more, inside + inside_more * more)
        sync = np.where(workers > 1, sync, 0.0)
        computing = alpha + beta * batch
        found: Floats = (computing**gamma + sync**gamma) ** (1 / gamma)
        return found


class Usl(Curved):
    """The universal scalability law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) (Gunther 1993); λ for a batch is what a worker
    alone does in α + β·batch seconds.
    """

    name = "usl"

    def starts(self, points: Sequence[Point]) -> list[Floats]:
        middle = float(np.median(times(points)))
        batch = float(np.median(columns(points)[2]))
        generator = np.random.default_rng(0)
        first = np.array([middle / 4, middle / 2 / batch, 1e-2, 1e-4])
        return [first * np.exp(generator.normal(0, 1, 4)) for _ in range(STARTS)]

    def form(self, parameters: Floats, points: Sequence[Point]) -> Floats:
        alpha, beta, sigma, kappa = parameters
        workers, _, batch = columns(points)
        return (alpha + beta * batch) * (1 + sigma * (workers - 1) + kappa * workers * (workers - 1))


class LastValue(Predictor):
    """Whatever the largest configuration took, of those whose batch is nearest."""

    name = "last value"

    def fit(self, points: Sequence[Point]) -> None:
        self._workers, self._hosts, self._batch = columns(points)
        self._seconds = times(points)

    def predict(self, points: Sequence[Point]) -> Floats:
        found = []
        for _, _, batch in zip(*columns(points), strict=True):
            off = np.abs(np.log(self._batch / batch))
            near = off <= off.min() + TINY
            largest = near & (self._workers == self._workers[near].max())
            found.append(float(self._seconds[largest].mean()))
        return np.array(found)
