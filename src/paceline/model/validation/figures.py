"""Error figures of predictions, printed by every validation for our model and for all baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import beta, spearmanr

from paceline.model.equations.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Errors relative to the measured step times, as fractions."""

    n: int
    mape: float
    """Mean absolute error."""
    median: float
    p95: float
    max: float
    bias: float
    """Mean signed error; positive if predicted steps are too long."""
    spearman: float | None
    """Rank correlation of predicted and measured step times; None for fewer than three configurations."""
    coverage: float | None = None
    """Fraction of measured values inside their 90 % intervals; None without intervals."""
    coverage_low: float | None = None
    coverage_high: float | None = None
    """95 % interval of the coverage (Clopper and Pearson 1934)."""

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def figures(predicted: Floats, measured: Floats, intervals: tuple[Floats, Floats] | None = None) -> Figures:
    """Compute all figures of these predictions."""
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
    """Exact confidence interval of a proportion."""
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return low, high


def mean_over_groups(groups: Sequence[Figures]) -> dict[str, float | None]:
    """Mean of each figure over groups; each group has the same weight."""
    names = ("mape", "median", "p95", "max", "bias", "spearman", "coverage")
    means: dict[str, float | None] = {}
    for name in names:
        values = [value for group in groups if (value := getattr(group, name)) is not None]
        means[name] = float(np.mean(values)) if values else None
    return means
