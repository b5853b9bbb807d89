"""The interval of a mean of few values: Student's t, and the BCa bootstrap where there are enough of them.

Works on whatever scale the values are on; `log_estimate` brings what was found on logarithms back.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from paceline.stats.checked import Floats
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import KnownBy

FEWEST_WITH_SPREAD = 2
"""One value says nothing about spread: no interval, never a made-up one."""

BOOTSTRAP_FROM = 12
"""With fewer runs a bootstrap sees too few distinct resamples and too little of the tails; t does better."""

RESAMPLES = 9999
"""Puts about a hundred resamples in each tail of a 95 % interval of 12 runs, for under ten milliseconds."""

MIN_TAIL_RESAMPLES = 5
"""An end point resting on fewer resamples than this is noise, and t is used instead."""

SEED = 20130620
"""Any fixed number: the same runs must give the same interval, today and in the published report."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanEnds:
    """Where the true mean plausibly lies, and how that was found."""

    ends: tuple[float, float] | None
    """None for too few values."""
    method: Literal["t", "BCa", "none"]


def ends_of_mean(values: Floats, level: float, *, least_values: int = FEWEST_WITH_SPREAD) -> MeanEnds:
    """The interval of the arithmetic mean: t, and BCa from 12 values up; none of fewer values than the least.

    BCa is Efron, "Better bootstrap confidence intervals", JASA 82, 1987. Resampling n values understates
    their spread by sqrt((n-1)/n) and uses normal quantiles, so plain BCa of 15 runs covers about 91 %, not
    95 %. Its level is therefore expanded to match t (Hesterberg, "What teachers should know about the
    bootstrap", The American Statistician 69(4), 2015). Where BCa degenerates (equal values) t is used.

    Raises:
        ValueError: A level outside (0, 1).
    """
    check_level(level)
    n = len(values)
    if n < max(least_values, FEWEST_WITH_SPREAD):
        return MeanEnds(ends=None, method="none")
    if n >= BOOTSTRAP_FROM and (ends := _bca(values, level)) is not None:
        return MeanEnds(ends=ends, method="BCa")
    mean, half_width = float(values.mean()), t_quantile(level, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return MeanEnds(ends=(mean - half_width, mean + half_width), method="t")


def log_estimate(
    mean: float, ends: tuple[float, float] | None, *, level: float, unit: str, by: KnownBy, n_runs: int
) -> Estimate:
    """An estimate whose value and ends were found as natural logarithms."""
    low, high = (None, None) if ends is None else map(_exp, ends)
    return Estimate(value=_exp(mean), low=low, high=high, level=level, unit=unit, by=by, n_runs=n_runs)


@cache
def t_quantile(level: float, df: float) -> float:
    """How many standard errors the t interval of this level reaches to each side.

    Kept: rows of a table have the same few numbers of runs.
    """
    # Takes a sixth of a second to import, and `plan` gets by without it; so elsewhere in this package.
    from scipy import special  # noqa: PLC0415

    check_level(level)
    return float(-special.stdtrit(df, (1 - level) / 2))


def check_level(level: float) -> None:
    """Refuse a level that no interval can have.

    Raises:
        ValueError: It does not lie between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")


def _bca(values: Floats, level: float) -> tuple[float, float] | None:
    """Ends of the expanded BCa interval of the mean, or None where it degenerates."""
    # scipy.stats takes a second to import, and most commands get by without it.
    from scipy import special, stats  # noqa: PLC0415

    n = len(values)
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    expanded = 1 - 2 * float(special.ndtr(-t_quantile(level, n - 1) * math.sqrt(n / (n - 1))))
    tail_resamples = (1 - expanded) / 2 * RESAMPLES
    if np.ptp(values) == 0 or tail_resamples < MIN_TAIL_RESAMPLES:
        return None

    # BCa counts the resamples below the mean, so ties broken by rounding would move the interval. With values
    # sorted, standardised and rounded, neither the order of the runs nor the unit of time matters.
    def mean_of(resample: Floats, axis: int) -> Floats:
        means: Floats = np.round(resample.mean(axis=axis), 9)
        return means

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        low, high = stats.bootstrap(
            ((np.sort(values) - mean) / spread,),
            mean_of,
            n_resamples=RESAMPLES,
            confidence_level=expanded,
            method="BCa",
            vectorized=True,
            rng=np.random.default_rng(SEED),
        ).confidence_interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return mean + spread * float(low), mean + spread * float(high)


def _exp(log: float) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf
