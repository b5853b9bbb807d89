"""Published models as baselines, fitted on the same points as ours.

All are fitted to relative errors, by which they are judged. They predict step time from workers, hosts and batch per
worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import least_squares, nnls

from paceline.model.equations.arrays import Floats
from paceline.model.foreign.tables import MeasuredPoint

TINY = 1e-9
STARTS = 6
"""Number of searches per fit; the best result is used, because some end in local minima."""
ORDINARY = 0.1
"""Error in logarithms above which a robust loss reduces the weight of a point."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of the points that a model may use."""

    workers: Floats
    hosts: Floats
    batch: Floats

    @property
    def per_host(self) -> Floats:
        """Mean number of workers per host."""
        return self.workers / self.hosts


def columns(points: Sequence[MeasuredPoint]) -> Columns:
    table = np.array([(point.workers, point.hosts, point.batch) for point in points], dtype=float)
    return Columns(table[:, 0], table[:, 1], table[:, 2])


def times(points: Sequence[MeasuredPoint]) -> Floats:
    return np.array([point.step_s for point in points])


class Predictor(ABC):
    """A model that is fitted to step times of some configurations and predicts those of others."""

    name: str

    @abstractmethod
    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        """Fit the model to these points."""

    @abstractmethod
    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        """Step time in seconds for each point, from workers, hosts and batch only."""

    def interval(self, points: Sequence[MeasuredPoint]) -> tuple[Floats, Floats] | None:
        """90 % intervals of the predictions; None if the model has none."""
        del points
        return None


class Ernest(Predictor):
    """T = θ₀ + θ₁·work/P + θ₂·P + θ₃·log P, all θ ≥ 0 (Venkataraman et al. 2016). The work per worker is its
    batch.
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
    """A nonlinear form whose parameters are searched for in their logarithms, so that all stay positive."""

    loss: Literal["linear", "soft_l1"] = "linear"
    searches = STARTS

    @abstractmethod
    def starts(self, step_s: float, batch: float) -> Floats:
        """Start of the first search, for a typical step time and batch; the other searches start around it."""

    @abstractmethod
    def form(self, parameters: Floats, at: Columns) -> Floats:
        """Step time in seconds for each point."""

    def doubts(self) -> Floats:
        """Penalty for each parameter that is a factor e off its start, as an error on every point; 0 for none."""
        return np.zeros(1)

    def weights(self, at: Columns) -> Floats:
        """Weight of each point."""
        return np.ones_like(at.workers)

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        at, seconds = columns(points), times(points)
        logs, weights = np.log(seconds), self.weights(at)
        first = np.log(np.maximum(self.starts(float(np.median(seconds)), float(np.median(at.batch))), TINY))
        doubts = self.doubts() * np.sqrt(len(points))

        def residuals(log_parameters: Floats) -> Floats:
            errors = np.log(np.maximum(self.form(np.exp(log_parameters), at), TINY)) - logs
            return np.concatenate([weights * errors, doubts * (log_parameters - first)])

        generator = np.random.default_rng(0)
        begins = [first, *(first + generator.normal(0, 1, len(first)) for _ in range(self.searches - 1))]
        ends = [
            least_squares(
                residuals, begin, max_nfev=300, bounds=(first - 25, first + 25), loss=self.loss, f_scale=ORDINARY
            )
            for begin in begins
        ]
        best = min(ends, key=lambda end: float(end.cost))
        self.parameters, self.cost = np.exp(best.x), float(best.cost)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        return self.form(self.parameters, columns(points))


def bent(first_s: Floats, second_s: Floats, bend: float) -> Floats:
    """Combine two times, from their sum (bend 0) to nearly their maximum: (a^γ + b^γ)^(1/γ), 1 ≤ γ ≤ 10."""
    gamma = 1 + 9 * bend / (1 + bend)
    longer = np.maximum(first_s, second_s)
    combined: Floats = longer * ((first_s / longer) ** gamma + (second_s / longer) ** gamma) ** (1 / gamma)
    return combined


class Pollux(Curved):
    """T = (T_grad^γ + T_sync^γ)^(1/γ); T_grad = α + β·batch; T_sync = α' + β'·max(P − 2, 0), fitted separately inside
    a host and between hosts; 1 ≤ γ ≤ 10 (Qiao et al. 2021).
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
    """The universal scalability law, X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) (Gunther 1993); a single
    worker takes α + β·batch seconds per step.
    """

    name = "usl"

    def starts(self, step_s: float, batch: float) -> Floats:
        return np.array([step_s / 4, step_s / 2 / batch, 1e-2, 1e-4])

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, sigma, kappa = parameters
        slower = 1 + sigma * (at.workers - 1) + kappa * at.workers * (at.workers - 1)
        step_s: Floats = (alpha + beta * at.batch) * slower
        return step_s


class Ring(Curved):
    """Compute and a ring all-reduce of 2(P − 1)·α + 2(P − 1)/P·m·β seconds, separate inside and between hosts."""

    together: float
    """How the two combine: 0 for their sum, infinity for their maximum."""

    def starts(self, step_s: float, batch: float) -> Floats:
        return step_s * np.array([1 / 4, 1 / 2 / batch, 1 / 20, 1 / 1000, 1 / 10, 1 / 1000])

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, inside, inside_hop, between, between_hop = parameters
        turns = at.workers - 1
        wire, hop = np.where(at.hosts > 1, between, inside), np.where(at.hosts > 1, between_hop, inside_hop)
        sync = 2 * turns * hop + 2 * turns / at.workers * wire
        compute_s = alpha + beta * at.batch
        step_s: Floats = compute_s + sync if self.together == 0 else np.maximum(compute_s, sync)
        return step_s


class Sum(Ring):
    """A ring all-reduce without overlap."""

    name = "sum"
    together = 0.0


class Max(Ring):
    """A ring all-reduce with perfect overlap."""

    name = "max"
    together = np.inf


class LastValue(Predictor):
    """The step time of the largest configuration with the nearest batch."""

    name = "last value"

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        self._at, self._seconds = columns(points), times(points)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        predicted = []
        for batch in columns(points).batch:
            distance = np.abs(np.log(self._at.batch / batch))
            near = distance <= distance.min() + TINY
            largest = near & (self._at.workers == self._at.workers[near].max())
            predicted.append(float(self._seconds[largest].mean()))
        return np.array(predicted)


BASELINES = (Ernest, Pollux, Usl, Sum, Max, LastValue)
