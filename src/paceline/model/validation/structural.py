"""Our model where nothing but whole steps is known: tables of others. Terms of a step's structure, fitted together.

    computing   C = (a + c·(batch/b₀)^p) · (1 + κ·[g > 1] + σ·z(P))
    exchange    X = 2(g − 1)/g · w₁ + [n > 1] · w₂ · (G(n) + s·log₂ g) · d^[n = 2]
    step        T = ((1 − φ)·C + ((φ·C)^γ + X^γ)^(1/γ)) · h(batch)

g workers a host, n hosts, P in all. κ: workers of one host share its memory, bus and loaders. z(P): mean of the largest
of P standard normals (Blom 1958). φ: what of computing an exchange can hide behind; 1 ≤ γ ≤ 10: how well it does.
d: two hosts have only each other to talk to, and measure unlike three or more. h: libraries choose their kernels by the
batch, so each has its own way to be off a smooth curve.

G: how an exchange grows with hosts; of a ring that only bandwidth holds back it is 2(n − 1)/n, else
1 + ρ·(50 ms/w₂)^¼·log₂ n: the shorter an exchange, the more of it is latency, which adds up from host to host.

How fast it grows is hardly told by few hosts, least of all where two of them are a case of their own. So ρ is not
fitted: the answer is the geometric mean over a few, each weighed by how well it explains the points and how usual it is
in the published tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from paceline.model.equations.step import Floats
from paceline.model.foreign.tables import MeasuredPoint
from paceline.model.validation.baselines import TINY, Columns, Curved, Predictor, bent, columns, times

RING = 0.0
GROWTHS = {RING: 0.1, 0.25: 0.2, 0.5: 0.5, 1.0: 0.2}
"""What each doubling of hosts adds to an exchange of USUAL_S → how usual that is."""
USUAL_S = 0.05
LATENCY_SHARE = 0.25
"""By which power of its length an exchange grows less. Of 0, ¼ and ½ the one that errs least on published tables."""
HABIT_POINTS = 5.0
"""A batch that was measured as often is believed half of what it is off the curve."""
LEVEL = 0.90
WIDER_PER_DOUBLING = 0.5
UNKNOWN_ERROR = 0.25
"""Half width of an interval, in logarithms, where nothing could be held out."""
FEWEST = 8
"""Points on each side of an inner split that can tell an error."""


class Form(Curved):
    """One growth of the exchange with hosts."""

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
        found: Floats = super().predict(points) * np.exp(np.interp(np.log(columns(points).batch), *self._habits))
        return found

    def starts(self, step_s: float, batch: float) -> Floats:
        self._batch = batch
        times_s = [step_s / 4, step_s / 2, step_s / 20, step_s / 10]
        return np.array([*times_s, 1.0, 0.1, 1.0, 0.05, 0.01, 3.0, 1.0])

    def doubts(self) -> Floats:
        """Exponent and pair are 1 where the points do not say otherwise; all others are nearly free."""
        return np.array([1e-4] * 4 + [0.03, 1e-4, 0.05] + [1e-4] * 4)

    def weights(self, at: Columns) -> Floats:
        """Every placement counts alike, however often it was measured, and the more hosts it has the more."""
        placements = list(zip(at.workers, at.hosts, strict=True))
        often = Counter(placements)
        weights = at.hosts / np.sqrt([often[placement] for placement in placements])
        found: Floats = weights / np.sqrt(np.mean(weights**2))
        return found

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, inside, wire, power, crowd, pair, contention, spread, hideable, bend = parameters
        group, hosts = at.per_host, at.hosts
        slowest = np.maximum(ndtri((at.workers - 0.375) / (at.workers + 0.25)), 0.0)
        slower = 1 + contention * (group > 1) + spread * slowest
        computing = (alpha + beta * (at.batch / self._batch) ** (2 * power / (1 + power))) * slower
        added = self._growth * (USUAL_S / wire) ** LATENCY_SHARE
        grown = 2 * (hosts - 1) / hosts if self._growth == RING else 1 + added * np.log2(hosts)
        between = (hosts > 1) * wire * (grown + crowd * np.log2(group))
        exchange = 2 * (group - 1) / group * inside + between * np.where(hosts == 2, pair, 1.0)
        hidden = hideable / (1 + hideable) * computing
        found: Floats = computing - hidden + bent(hidden, exchange, bend)
        return found


class Mixture:
    """All growths, fitted to the same points."""

    def __init__(self, points: Sequence[MeasuredPoint]) -> None:
        self._forms = [Form(growth) for growth in GROWTHS]
        for form in self._forms:
            form.fit(points)
        # Points of one placement share what was wrong when it was measured: they say as much as one.
        placements = len({(point.workers, point.hosts) for point in points})
        costs = np.array([max(form.cost, TINY) for form in self._forms])
        likely = np.array(list(GROWTHS.values())) * (costs / costs.min()) ** (-placements / 2)
        self._weights = likely / likely.sum()

    def logs(self, points: Sequence[MeasuredPoint]) -> tuple[Floats, Floats]:
        """Logarithms of the steps, and how far the growths are apart in them (standard deviations)."""
        told = np.log([form.predict(points) for form in self._forms])
        mean: Floats = self._weights @ told
        return mean, np.sqrt(self._weights @ (told - mean) ** 2)


class Structural(Predictor):
    """The mixture, with an interval from what it got wrong when hosts were held out and how unlike the growths are."""

    name = "paceline"

    def fit(self, points: Sequence[MeasuredPoint]) -> None:
        self._error = _inner_error(points)
        self._hosts = max(point.hosts for point in points)
        self._workers = max(point.workers for point in points)
        self._mixture = Mixture(points)

    def predict(self, points: Sequence[MeasuredPoint]) -> Floats:
        found: Floats = np.exp(self._mixture.logs(points)[0])
        return found

    def interval(self, points: Sequence[MeasuredPoint]) -> tuple[Floats, Floats]:
        at, (mean, apart) = columns(points), self._mixture.logs(points)
        beyond = np.maximum(1.0, np.maximum(at.hosts / self._hosts, at.workers / self._workers))
        wide = np.hypot(self._error * (1 + WIDER_PER_DOUBLING * np.log2(beyond)), ndtri((1 + LEVEL) / 2) * apart)
        return np.exp(mean - wide), np.exp(mean + wide)


def _inner_error(points: Sequence[MeasuredPoint]) -> float:
    """Of the most hosts, predicted from the others: what 90 % of the errors stay below."""
    most = max(point.hosts for point in points)
    few = [point for point in points if point.hosts < most]
    many = [point for point in points if point.hosts == most]
    if len(few) < FEWEST or len(many) < FEWEST or len({point.hosts for point in few}) < 2:
        return UNKNOWN_ERROR
    return float(np.quantile(np.abs(Mixture(few).logs(many)[0] - np.log(times(many))), LEVEL))
