"""Means over runs with their intervals, and how many runs would be enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paceline.stats.checked import checked
from paceline.stats.estimate import LEVEL, Estimate
from paceline.stats.intervals import ends_of_mean, log_estimate, t_quantile
from paceline.stats.known_by import MEASURED, KnownBy

LEAST_RUNS = 3
"""Fewer runs give no interval: with two, t has one degree of freedom and the interval spans orders of magnitude."""


def mean_interval(
    run_means: Sequence[float],
    *,
    unit: str,
    by: KnownBy = MEASURED,
    level: float = LEVEL,
    least_runs: int = LEAST_RUNS,
) -> Estimate:
    """Geometric mean of positive run means, with its interval: t on the logs, BCa from 12 runs up (`ends_of_mean`).

    Assumes independent runs; t also assumes that their logs are about normal, which BCa does not.

    Args:
        run_means: one number per run.
        unit: of these numbers.
        by: how they are known.
        level: of the interval.
        least_runs: fewer give no interval. A rule that weighs how wide an interval is may ask for that of two runs
            (FEWEST_WITH_SPREAD); a reader would only be misled by it.

    Raises:
        ValueError: No runs, a value that is not finite and positive, or a level outside (0, 1).
    """
    logs = np.log(checked(run_means, positive=True))
    ends = ends_of_mean(logs, level, least_values=least_runs).ends
    return log_estimate(float(logs.mean()), ends, level=level, unit=unit, by=by, n_runs=len(logs))


def plain_interval(
    run_means: Sequence[float],
    *,
    unit: str,
    by: KnownBy = MEASURED,
    level: float = LEVEL,
    least_runs: int = LEAST_RUNS,
) -> Estimate:
    """Arithmetic mean of values that may be zero or negative (a loss, an idle share), with its interval.

    As `mean_interval`, but without logarithms: here it is the values that t takes to be about normal.

    Raises:
        ValueError: No runs, a value that is not finite, or a level outside (0, 1).
    """
    values = checked(run_means)
    low, high = ends_of_mean(values, level, least_values=least_runs).ends or (None, None)
    return Estimate(value=float(values.mean()), low=low, high=high, level=level, unit=unit, by=by, n_runs=len(values))


def runs_needed(run_means: Sequence[float], target_relative_half_width: float, level: float = LEVEL) -> int:
    """How many runs in total, at least 2, give a t interval of ± the target if the spread stays as it is.

    A plan, not a promise: the spread of few runs is itself uncertain, so ask again after every round, and fix
    a minimum and a maximum, since stopping at the first narrow interval costs a little coverage (after Stein,
    Annals of Math. Statistics 16, 1945, who fixed the spread after the first stage to avoid that). One run
    knows no spread; the answer is then 2, the fewest that do.

    Raises:
        ValueError: No runs, a value that is not finite and positive, a target that is not positive and
            finite, or a level outside (0, 1).
    """
    if not (math.isfinite(target_relative_half_width) and target_relative_half_width > 0):
        raise ValueError(f"the target half-width must be positive, not {target_relative_half_width}")
    logs = np.log(checked(run_means, positive=True))
    spread = float(logs.std(ddof=1)) if len(logs) > 1 else 0.0
    target = math.log1p(target_relative_half_width)

    def too_few(n: int) -> bool:
        return t_quantile(level, n - 1) * spread / math.sqrt(n) > target

    enough = 2
    while too_few(enough):
        enough *= 2
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (middle, enough) if too_few(middle) else (short, middle)
    return enough
