"""Tests of two trials: by how much one is larger, whether they differ, and whether they are shown to be equal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.stats.differences import Spread, log_difference
from paceline.stats.estimate import LEVEL, Estimate
from paceline.stats.intervals import FEWEST_WITH_SPREAD, check_level, ends_of_mean, log_estimate, t_quantile
from paceline.stats.known_by import DERIVED, KnownBy

MARGIN = 0.02
"""Two trials within 2 % count as equal. Link order or the size of the environment variables alone can move
one program by more than that (Mytkowicz et al., "Producing wrong data without doing anything obviously
wrong!", ASPLOS 2009), so a smaller difference is no reason to choose one framework over another."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioTest:
    """How many times larger a is than b, and the p value of "no difference".

    When spread is unknown (fewer than two common rounds, and a side with a single run) the ratio has no interval
    and p is 1: no evidence, in a form that `holm` and `verdict` take without a special case.
    """

    ratio: Estimate
    """Geometric mean of a over that of b; over the common rounds when paired. It rests on as many runs as there are
    pairs, or as the smaller side has."""
    p: float
    """Two-sided p value of "the ratio is 1", always from t, also beside a BCa interval."""
    n_pairs: int
    """Rounds compared with each other; 0 when the runs could not be paired."""
    method: str
    """`paired t`, `paired moderated t`, `paired BCa`, `Welch t`, or `none` when spread is unknown."""

    @property
    def spread_known(self) -> bool:
        """Whether the runs say anything about spread, and so whether p is evidence."""
        return self.method != "none"


def ratio_interval(
    a: Mapping[int, float],
    b: Mapping[int, float],
    *,
    by: KnownBy = DERIVED,
    level: float = LEVEL,
    spread: Spread | None = None,
    least_runs: int = FEWEST_WITH_SPREAD,
) -> RatioTest:
    """Ratio a/b of run means keyed by round, with its interval and the p value of "no difference".

    Two or more common rounds are paired, and only they count: what a round does to both (a warm room, a noisy
    neighbour) cancels, and a paired t on the log ratios remains, BCa from 12 pairs up. Otherwise Welch's t on
    the logs (Welch, "The generalization of Student's problem", Biometrika 34, 1947). Assumes independent
    rounds, and for Welch also that nothing moved both sides together. With a shared spread the paired t is moderated
    by it (`shared_spread`).

    Args:
        a: round → run mean of one side.
        b: the same of the other.
        by: how the ratio is known.
        level: of the interval.
        spread: what other pairs say about the spread of this one.
        least_runs: fewer give no interval. By default the interval is there whenever p is evidence, so that the two
            can be held against each other; a ratio that stands alone before a reader needs LEAST_RUNS.

    Raises:
        ValueError: A side without runs, a value that is not finite and positive, or a level outside (0, 1).
    """
    check_level(level)
    difference = log_difference(a, b, spread)
    n_pairs = len(difference.pairs)
    n_runs = n_pairs or min(len(a), len(b))
    ends, method = None, "none"
    if n_pairs and not difference.moderated:
        paired = ends_of_mean(difference.pairs, level)
        ends, method = paired.ends, f"paired {paired.method}"
    elif difference.df > 0:
        half_width = t_quantile(level, difference.df) * difference.se
        ends = difference.mean - half_width, difference.mean + half_width
        method = "paired moderated t" if difference.moderated else "Welch t"
    return RatioTest(
        ratio=log_estimate(
            difference.mean, ends if n_runs >= least_runs else None, level=level, unit="1", by=by, n_runs=n_runs
        ),
        p=1.0 if difference.df == 0 else min(1.0, 2 * difference.tail(abs(difference.mean))),
        n_pairs=n_pairs,
        method=method,
    )


def equivalent(
    a: Mapping[int, float], b: Mapping[int, float], margin: float = MARGIN, spread: Spread | None = None
) -> float:
    """P value of "a and b differ by more than the margin": small means shown to be equal.

    Two one-sided t tests on the logs, the larger p of the two (Schuirmann, J. Pharmacokinetics and
    Biopharmaceutics 15, 1987); paired or Welch, and assuming the same, as `ratio_interval`. The bounds are
    1/(1 + margin) and 1 + margin, so it does not matter which of the two is called a. Below 0.05 exactly
    when the 90 % t interval lies inside the bounds; 1 when spread is unknown.

    Raises:
        ValueError: As `ratio_interval`, or a margin that is not positive and finite.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"the margin must be positive, not {margin}")
    difference = log_difference(a, b, spread)
    if difference.df == 0:
        return 1.0
    return difference.tail(math.log1p(margin) - abs(difference.mean))
