"""Our model for published tables, which have only whole step times: the terms of a step, fitted together.

    compute     C = (a + c·(batch/b₀)^p) · (1 + κ·[g > 1] + σ·z(P))
    exchange    X = 2(g − 1)/g · w₁ + [n > 1] · w₂ · (G(n) + s·log₂ g) · d^[n = 2]
    step        T = ((1 − φ)·C + ((φ·C)^γ + X^γ)^(1/γ)) · h(batch)

g is the number of workers per host, n of hosts and P of all workers. κ: workers of one host share memory, bus and
loaders. z(P): mean of the largest of P standard normals (Blom 1958). φ: fraction of compute that can hide the exchange;
1 ≤ γ ≤ 10: how well it does. d: two hosts exchange with each other only and behave differently from three or more.
h: libraries choose kernels by batch, so each batch deviates from a smooth curve in its own way.

G is the growth of the exchange with hosts: 2(n − 1)/n for a bandwidth-bound ring, otherwise
1 + ρ·(50 ms/w₂)^¼·log₂ n. The shorter an exchange, the larger its share of latency, which grows with the hosts.

Few hosts hardly determine the growth, especially since two hosts are a special case. So ρ is not fitted: the prediction
is the geometric mean over a few values, weighted by how well each explains the points and how common it is in the
published tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from paceline.model.equations.arrays import Floats
from paceline.model.foreign.tables import MeasuredPoint
from paceline.model.validation.baselines import TINY, Columns, Curved, Predictor, bent, columns, times
from paceline.stats.estimate import MODELLED_LEVEL

RING = 0.0
GROWTHS = {RING: 0.1, 0.25: 0.2, 0.5: 0.5, 1.0: 0.2}
"""Maps the relative growth of an exchange of USUAL_S per doubling of hosts to its prior weight."""
USUAL_S = 0.05
"""Seconds of a typical exchange."""
LATENCY_SHARE = 0.25
"""Exponent by which longer exchanges grow less. Of 0, ¼ and ½ it has the smallest error on published tables."""
HABIT_POINTS = 5.0
"""A batch with this many points is corrected by half of its deviation from the curve."""
WIDER_PER_DOUBLING = 0.5
UNKNOWN_ERROR = 0.25
"""Half width of an interval, in logarithms, if nothing could be held out."""
FEWEST = 8
"""Smallest number of points on each side of an inner split."""


class Form(Curved):
    """The model for one growth of the exchange with hosts."""

    loss = "soft_l1"
    searches = 2

    def __init__(self, growth: float) -> None:
        self.name = f"growth-{growth:g}"
        self._growth = growth

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        super().fit(points)
        at = columns(points)
        batches, which = np.unique(at.batch, return_inverse=True)
        weights = self.weights(at) ** 2
        off = np.bincount(which, weights * np.log(times(points) / self.form(self.parameters, at)))
        self._habits = np.log(batches), off / (np.bincount(which, weights) + HABIT_POINTS)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        step_s: Floats = super().predict(points) * np.exp(np.interp(np.log(columns(points).batch), *self._habits))
        return step_s

    def starts(self, step_s: float, batch: float) -> Floats:
        self._batch = batch
        times_s = [step_s / 4, step_s / 2, step_s / 20, step_s / 10]
        return np.array([*times_s, 1.0, 0.1, 1.0, 0.05, 0.01, 3.0, 1.0])

    def doubts(self) -> Floats:
        """Exponent and pair stay near 1 unless the points contradict it; all others are nearly free."""
        return np.array([1e-4] * 4 + [0.03, 1e-4, 0.05] + [1e-4] * 4)

    def weights(self, at: Columns) -> Floats:
        """Each placement has the same weight, however often it was measured, times its number of hosts."""
        placements = list(zip(at.workers, at.hosts, strict=True))
        often = Counter(placements)
        weights = at.hosts / np.sqrt([often[placement] for placement in placements])
        normalised: Floats = weights / np.sqrt(np.mean(weights**2))
        return normalised

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, inside, wire, power, crowd, pair, contention, spread, hideable, bend = parameters
        group, hosts = at.per_host, at.hosts
        slowest = np.maximum(ndtri((at.workers - 0.375) / (at.workers + 0.25)), 0.0)
        slower = 1 + contention * (group > 1) + spread * slowest
        compute_s = (alpha + beta * (at.batch / self._batch) ** (2 * power / (1 + power))) * slower
        added = self._growth * (USUAL_S / wire) ** LATENCY_SHARE
        grown = 2 * (hosts - 1) / hosts if self._growth == RING else 1 + added * np.log2(hosts)
        between = (hosts > 1) * wire * (grown + crowd * np.log2(group))
        exchange = 2 * (group - 1) / group * inside + between * np.where(hosts == 2, pair, 1.0)
        hidden = hideable / (1 + hideable) * compute_s
        step_s: Floats = compute_s - hidden + bent(hidden, exchange, bend)
        return step_s


class Mixture:
    """The models for all growths, fitted to the same points."""

    def __init__(self, points: Sequence[MeasuredPoint]) -> None:
        self._forms = [Form(growth) for growth in GROWTHS]
        for form in self._forms:
            form.fit(points)
        # Points of one placement share an error, so together they count as one.
        placements = len({(point.workers, point.hosts) for point in points})
        costs = np.array([max(form.cost, TINY) for form in self._forms])
        likely = np.array(list(GROWTHS.values())) * (costs / costs.min()) ** (-placements / 2)
        self._weights = likely / likely.sum()

    def logs(self, points: Sequence[MeasuredPoint]) -> tuple[Floats, Floats]:
        """Logarithms of the step times, and their standard deviations over the growths."""
        logs = np.log([form.predict(points) for form in self._forms])
        mean: Floats = self._weights @ logs
        return mean, np.sqrt(self._weights @ (logs - mean) ** 2)


class Structural(Predictor):
    """The mixture, with an interval from its error on held-out hosts and the spread of the growths."""

    name = "paceline"

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        self._error = _inner_error(points)
        self._hosts = max(point.hosts for point in points)
        self._workers = max(point.workers for point in points)
        self._mixture = Mixture(points)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        step_s: Floats = np.exp(self._mixture.logs(points)[0])
        return step_s

    def interval(self, points: Sequence[MeasuredPoint]) -> tuple[Floats, Floats]:
        at, (mean, apart) = columns(points), self._mixture.logs(points)
        beyond = np.maximum(1.0, np.maximum(at.hosts / self._hosts, at.workers / self._workers))
        wide = np.hypot(
            self._error * (1 + WIDER_PER_DOUBLING * np.log2(beyond)), ndtri((1 + MODELLED_LEVEL) / 2) * apart
        )
        return np.exp(mean - wide), np.exp(mean + wide)


def _inner_error(points: Sequence[MeasuredPoint]) -> float:
    """90 % quantile of the errors when the points with the most hosts are predicted from the others."""
    most = max(point.hosts for point in points)
    few = [point for point in points if point.hosts < most]
    many = [point for point in points if point.hosts == most]
    if len(few) < FEWEST or len(many) < FEWEST or len({point.hosts for point in few}) < 2:
        return UNKNOWN_ERROR
    return float(np.quantile(np.abs(Mixture(few).logs(many)[0] - np.log(times(many))), MODELLED_LEVEL))
