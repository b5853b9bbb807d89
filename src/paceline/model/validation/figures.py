"""How wrong predictions were: the figures that every validation prints, for our model and every other alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import beta, spearmanr

from paceline.model.equations.step import Floats

LEVEL = 0.90
"""Of prediction intervals."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Errors relative to what was measured, as fractions."""

    n: int
    mape: float
    """Mean absolute error."""
    median: float
    p95: float
    max: float
    bias: float
    """Mean signed error: above zero, steps were predicted too long."""
    spearman: float | None
    """Agreement on the order of configurations; None for fewer than three."""
    coverage: float | None = None
    """Part of the measured values inside their 90 % intervals; None where none were given."""
    coverage_low: float | None = None
    coverage_high: float | None = None
    """95 % interval of the coverage (Clopper and Pearson 1934)."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def figures(predicted: Floats, measured: Floats, intervals: tuple[Floats, Floats] | None = None) -> Figures:
    """All figures of some predictions."""
    error = predicted / measured - 1
    size = np.abs(error)
    covered: dict[str, float | None] = {}
    if intervals is not None:
        inside = (intervals[0] <= measured) & (measured <= intervals[1])
        low, high = binomial_interval(int(inside.sum()), len(inside))
        covered = {"coverage": float(inside.mean()), "coverage_low": low, "coverage_high": high}
    return Figures(
        n=len(error),
        mape=float(size.mean()),
        median=float(np.median(size)),
        p95=float(np.quantile(size, 0.95)),
        max=float(size.max()),
        bias=float(error.mean()),
        spearman=_order(predicted, measured),
        **covered,
    )


def _order(predicted: Floats, measured: Floats) -> float | None:
    if len(measured) < 3 or np.ptp(predicted) == 0 or np.ptp(measured) == 0:
        return None
    return float(spearmanr(predicted, measured).statistic)


def binomial_interval(successes: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a proportion."""
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return low, high


def mean_over_groups(groups: Sequence[Figures]) -> dict[str, float | None]:
    """The mean of each figure over groups, each group counting once however many rows it has."""
    names = ("mape", "median", "p95", "max", "bias", "spearman", "coverage")
    found: dict[str, float | None] = {}
    for name in names:
        told = [value for group in groups if (value := getattr(group, name)) is not None]
        found[name] = float(np.mean(told)) if told else None
    return found
