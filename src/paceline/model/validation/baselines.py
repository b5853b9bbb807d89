"""Models that others published, fitted on the same points as ours: what a prediction must beat.

All are fitted to relative errors, as they are judged, and say a step time for workers, hosts and a batch a worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import least_squares, nnls

from paceline.model.equations.step import Floats
from paceline.model.foreign.tables import MeasuredPoint

TINY = 1e-9
STARTS = 6
"""Of a fit that may end in a poor valley; the best end counts."""
ORDINARY = 0.1
"""An error in logarithms above which a point counts less and less, for forms that ask for it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Points as a model may see them."""

    workers: Floats
    hosts: Floats
    batch: Floats

    @property
    def per_host(self) -> Floats:
        """Workers a host, on average."""
        return self.workers / self.hosts


def columns(points: Sequence[MeasuredPoint]) -> Columns:
    told = np.array([(point.workers, point.hosts, point.batch) for point in points], dtype=float)
    return Columns(told[:, 0], told[:, 1], told[:, 2])


def times(points: Sequence[MeasuredPoint]) -> Floats:
    return np.array([point.step_s for point in points])


class Predictor(ABC):
    """Fits step times of some configurations and predicts others."""

    name: str

    @abstractmethod
    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        """Learn from these."""

    @abstractmethod
    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        """Seconds of a step of each; looks at workers, hosts and batch only."""

    def interval(self, points: Sequence[MeasuredPoint]) -> tuple[Floats, Floats] | None:
        """90 % intervals of the predictions; None: it has none."""
        del points
        return None


class Ernest(Predictor):
    """T = θ₀ + θ₁·work/P + θ₂·P + θ₃·log P, none below zero (Venkataraman et al. 2016). A worker's share of the work is
    its batch.
    """

    name = "ernest"

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        seconds = times(points)
        self._theta, _ = nnls(self._features(columns(points)) / seconds[:, None], np.ones(len(points)))

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        return self._features(columns(points)) @ self._theta

    @staticmethod
    def _features(at: Columns) -> Floats:
        return np.stack([np.ones_like(at.workers), at.batch, at.workers, np.log(at.workers)], axis=1)


class Curved(Predictor):
    """A form with parameters that must be searched for, in their logarithms, so that none falls below zero."""

    loss: Literal["linear", "soft_l1"] = "linear"
    searches = STARTS

    @abstractmethod
    def starts(self, step_s: float, batch: float) -> Floats:
        """Where the first search begins, for a usual step and batch; the others begin around it."""

    @abstractmethod
    def form(self, parameters: Floats, at: Columns) -> Floats:
        """Seconds of a step."""

    def doubts(self) -> Floats:
        """What it costs each parameter to be off its start by a factor e, as an error on every point; 0: nothing."""
        return np.zeros(1)

    def weights(self, at: Columns) -> Floats:
        """How much each point counts."""
        return np.ones_like(at.workers)

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        at, seconds = columns(points), times(points)
        logs, weights = np.log(seconds), self.weights(at)
        first = np.log(np.maximum(self.starts(float(np.median(seconds)), float(np.median(at.batch))), TINY))
        doubts = self.doubts() * np.sqrt(len(points))

        def off(told: Floats) -> Floats:
            errors = np.log(np.maximum(self.form(np.exp(told), at), TINY)) - logs
            return np.concatenate([weights * errors, doubts * (told - first)])

        generator = np.random.default_rng(0)
        begins = [first, *(first + generator.normal(0, 1, len(first)) for _ in range(self.searches - 1))]
        ends = [
            least_squares(off, begin, max_nfev=300, bounds=(first - 25, first + 25), loss=self.loss, f_scale=ORDINARY)
            for begin in begins
        ]
        best = min(ends, key=lambda end: float(end.cost))
        self.parameters, self.cost = np.exp(best.x), float(best.cost)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        return self.form(self.parameters, columns(points))


def bent(one: Floats, other: Floats, bend: float) -> Floats:
    """Between the sum of two times (bend 0) and nearly their maximum: (a^γ + b^γ)^(1/γ), 1 ≤ γ ≤ 10."""
    gamma = 1 + 9 * bend / (1 + bend)
    most = np.maximum(one, other)
    found: Floats = most * ((one / most) ** gamma + (other / most) ** gamma) ** (1 / gamma)
    return found


class Pollux(Curved):
    """T = (T_grad^γ + T_sync^γ)^(1/γ); T_grad = α + β·batch; T_sync = α' + β'·max(P − 2, 0), apart inside a host and
    between hosts; 1 ≤ γ ≤ 10 (Qiao et al. 2021).
    """

    name = "pollux"

    def starts(self, step_s: float, batch: float) -> Floats:
        return step_s * np.array([1 / 4, 1 / 2 / batch, 1 / 10, 1 / 100, 1 / 5, 1 / 100, 1 / step_s])

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, inside, inside_more, between, between_more, bend = parameters
        more = np.maximum(at.workers - 2, 0)
        sync = np.where(at.hosts > 1, between + between_more * more, inside + inside_more * more)
        return bent(alpha + beta * at.batch, np.where(at.workers > 1, sync, 0.0), bend)


class Usl(Curved):
    """The universal scalability law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) (Gunther 1993); λ for a batch is what a
    worker alone does in α + β·batch seconds.
    """

    name = "usl"

    def starts(self, step_s: float, batch: float) -> Floats:
        return np.array([step_s / 4, step_s / 2 / batch, 1e-2, 1e-4])

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, sigma, kappa = parameters
        slower = 1 + sigma * (at.workers - 1) + kappa * at.workers * (at.workers - 1)
        found: Floats = (alpha + beta * at.batch) * slower
        return found


class Ring(Curved):
    """Computing and a ring all-reduce of 2(P − 1)·α + 2(P − 1)/P·m·β seconds, apart inside a host and between hosts."""

    together: float
    """How the two add up: 0 sum, endless: the longer one."""

    def starts(self, step_s: float, batch: float) -> Floats:
        return step_s * np.array([1 / 4, 1 / 2 / batch, 1 / 20, 1 / 1000, 1 / 10, 1 / 1000])

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, inside, inside_hop, between, between_hop = parameters
        turns = at.workers - 1
        wire, hop = np.where(at.hosts > 1, between, inside), np.where(at.hosts > 1, between_hop, inside_hop)
        sync = 2 * turns * hop + 2 * turns / at.workers * wire
        computing = alpha + beta * at.batch
        found: Floats = computing + sync if self.together == 0 else np.maximum(computing, sync)
        return found


class Sum(Ring):
    """No overlap at all."""

    name = "sum"
    together = 0.0


class Max(Ring):
    """Perfect overlap."""

    name = "max"
    together = np.inf


class LastValue(Predictor):
    """Whatever the largest configuration took, of those whose batch is nearest."""

    name = "last value"

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        self._at, self._seconds = columns(points), times(points)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        found = []
        for batch in columns(points).batch:
            off = np.abs(np.log(self._at.batch / batch))
            near = off <= off.min() + TINY
            largest = near & (self._at.workers == self._at.workers[near].max())
            found.append(float(self._seconds[largest].mean()))
        return np.array(found)


BASELINES = (Ernest, Pollux, Usl, Sum, Max, LastValue)
