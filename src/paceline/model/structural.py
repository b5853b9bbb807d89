"""Our model where nothing but whole steps is known: tables of others. Terms of a step's structure, fitted together.

    computing   C = (a + c·batch) · (1 + σ·z(P))          z: mean of the largest of P standard normals (Blom 1958)
    exchange    X = inside host:  2(g − 1)/g · w₁ + 2(g − 1)·h₁
                    between hosts: 2(n − 1)/n · w₂ + 2(n − 1)·h₂ + log₂ n · l₂, and inside again where g > 1
    step        T = (C^γ + X^γ)^(1/γ)                     1 ≤ γ ≤ 10: from no overlap to nearly all of it

g workers a host, n hosts, P in all. How X grows with n cannot be told from few hosts: each way of growing is fitted by
itself, and the answer is their geometric mean, each weighed by how well it predicts the largest hosts from the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from paceline.model.baselines import Columns, Curved, Predictor, bent, columns, times
from paceline.model.step import Floats
from paceline.model.tables import Point

LEVEL = 0.90
WIDER_PER_DOUBLING = 0.5
LEAST_ERROR = 0.01
FEWEST = 8
"""Points on each side of an inner split that can weigh anything."""


class Form(Curved):
    """One way in which the exchange grows with hosts."""

    def __init__(self, growth: str) -> None:
        self.name = growth

    def starts(self, step_s: float, batch: float) -> Floats:
        return step_s * np.array([1 / 4, 1 / 2 / batch, 1 / 20, 1 / 10, 1 / 100, 0.01 / step_s, 1 / step_s])

    def form(self, parameters: Floats, at: Columns) -> Floats:
        alpha, beta, inside, wire, more, spread, bend = parameters
        group, hosts = at.per_host, at.hosts
        growth = {"hops": 2 * (hosts - 1), "rounds": np.log2(hosts), "none": np.zeros_like(hosts)}[self.name]
        exchange = 2 * (group - 1) / group * inside + 2 * (hosts - 1) / hosts * wire + growth * more
        slowest = ndtri((at.workers - 0.375) / (at.workers + 0.25))
        computing = (alpha + beta * at.batch) * (1 + spread * np.maximum(slowest, 0.0))
        return bent(computing, exchange, bend)


class Structural(Predictor):
    """All forms together."""

    name = "paceline"

    def fit(self, points: Sequence[Point]) -> None:
        self._forms = [Form(growth) for growth in ("hops", "rounds", "none")]
        errors = self._inner(points)
        weights = np.array([1 / max(LEAST_ERROR, float(np.mean(np.abs(error)))) ** 2 for error in errors])
        self._weights = weights / weights.sum()
        mixed = np.abs(sum(weight * error for weight, error in zip(self._weights, errors, strict=True)))
        self._error = float(np.quantile(mixed, LEVEL)) if len(mixed) else 0.25
        self._hosts = max(point.hosts for point in points)
        self._workers = max(point.workers for point in points)
        for form in self._forms:
            form.fit(points)

    def predict(self, points: Sequence[Point]) -> Floats:
        logs = [np.log(form.predict(points)) for form in self._forms]
        found: Floats = np.exp(self._weights @ np.array(logs))
        return found

    def interval(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        at, value = columns(points), self.predict(points)
        beyond = np.maximum(1.0, np.maximum(at.hosts / self._hosts, at.workers / self._workers))
        wide = self._error * (1 + WIDER_PER_DOUBLING * np.log2(beyond))
        return value * np.exp(-wide), value * np.exp(wide)

    def _inner(self, points: Sequence[Point]) -> list[Floats]:
        """Log errors of each form on the largest hosts, fitted on the rest; where that is too little, on all."""
        most = max(point.hosts for point in points)
        few = [point for point in points if point.hosts < most]
        many = [point for point in points if point.hosts == most]
        if len(few) < FEWEST or len(many) < FEWEST or len({point.hosts for point in few}) < 2:
            few = many = list(points)
        errors = []
        for form in self._forms:
            form.fit(few)
            errors.append(np.log(form.predict(many) / times(many)))
        return errors
