"""Intervals of run means, ratios of two trials, equivalence, and how many runs would be enough."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from paceline.stats.checked import RELATIVE_ROUNDING, Floats, checked

LEVEL = 0.95
"""Confidence of every interval unless another is asked for: what readers take an error bar to mean."""

LEAST_RUNS = 3
"""Fewer runs give no interval: with two, t has one degree of freedom and the interval spans orders of magnitude."""

MARGIN = 0.02
"""Two trials within 2 % count as equal. Link order or the size of the environment variables alone can move
one program by more than that (Mytkowicz et al., "Producing wrong data without doing anything obviously
wrong!", ASPLOS 2009), so a smaller difference is no reason to choose one framework over another."""

BOOTSTRAP_FROM = 12
"""With fewer runs a bootstrap sees too few distinct resamples and too little of the tails; t does better."""

RESAMPLES = 9999
"""Puts about a hundred resamples in each tail of a 95 % interval of 12 runs, for under ten milliseconds."""

MIN_TAIL_RESAMPLES = 5
"""An end point resting on fewer resamples than this is noise, and t is used instead."""

SEED = 20130620
"""Any fixed number: the same runs must give the same interval, today and in the published report."""


SPREAD_FROM = 40
"""Fewer pairs say too little about how spreads vary. Among equal trials with unequal noise, in 3 and 5 rounds, up to
8.5 % of 400 tables of 10 pairs and 6.5 % of those of 21 pairs had a false difference; of 42 and of
210 pairs at most 4.5 %."""

LARGEST_SPREAD_DF = 8.0
"""What a shared spread may count at most. Pairs of a table have rows in common, so they agree more than they should."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """What many pairs say together about the spread of one: few rounds alone say little about it."""

    variance: float
    """Of one log ratio."""
    df: float
    """Rounds that this knowledge is worth."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A mean over runs and where the true one plausibly lies.

    One run says nothing about spread: with `n_runs < 2` both ends are None, never a made-up number.
    """

    value: float
    """Geometric mean of the runs (`mean_interval`) or arithmetic mean (`plain_interval`)."""
    low: float | None
    """Lower end, or None with fewer than two runs."""
    high: float | None
    """Upper end, or None with fewer than two runs."""
    n_runs: int
    """Runs, not steps."""
    level: float = LEVEL
    """Share of such intervals that contain the true mean."""
    method: str
    """`t`, `BCa`, or `none` with fewer than two runs."""

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval over the value: the "± 2 %" of a report. None without interval or at value 0."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """How many times larger a is than b, and the p value of "no difference".

    When spread cannot be known (fewer than two common rounds, and a side with a single run) both ends are
    None and p is 1: no evidence, in a form that `holm` and `verdict` take without a special case.
    """

    value: float
    """Geometric mean of a over that of b; over the common rounds when paired."""
    low: float | None
    """Lower end, or None when spread is unknown."""
    high: float | None
    """Upper end, or None when spread is unknown."""
    p: float
    """Two-sided p value of "the ratio is 1", always from t, also beside a BCa interval."""
    n_pairs: int
    """Rounds compared with each other; 0 when the runs could not be paired."""
    level: float = LEVEL
    """Share of such intervals that contain the true ratio."""
    method: str
    """`paired t`, `paired moderated t`, `paired BCa`, `Welch t`, or `none` when spread is unknown."""


def mean_interval(run_means: Sequence[float], level: float = LEVEL) -> Interval:
    """Geometric mean of positive run means, with its interval: t on the logs, BCa from 12 runs up.

    Assumes independent runs; t also assumes that their logs are about normal, which BCa does not.

    BCa is Efron, "Better bootstrap confidence intervals", JASA 82, 1987. Resampling n values understates
    their spread by sqrt((n-1)/n) and uses normal quantiles, so plain BCa of 15 runs covers about 91 %, not
    95 %. Its level is therefore expanded to match t (Hesterberg, "What teachers should know about the
    bootstrap", The American Statistician 69(4), 2015). Where BCa degenerates (equal values) t is used.

    Raises:
        ValueError: No runs, a value that is not finite and positive, or a level outside (0, 1).
    """
    value, low, high, method = _interval(np.log(checked(run_means, positive=True)), level)
    return Interval(
        value=_exp(value),
        low=_exp_end(low),
        high=_exp_end(high),
        n_runs=len(run_means),
        level=level,
        method=method,
    )


def plain_interval(run_means: Sequence[float], level: float = LEVEL) -> Interval:
    """Arithmetic mean of values that may be zero or negative (a loss, an idle share), with its interval.

    As `mean_interval`, but without logarithms: here it is the values that t takes to be about normal.

    Raises:
        ValueError: No runs, a value that is not finite, or a level outside (0, 1).
    """
    value, low, high, method = _interval(checked(run_means), level)
    return Interval(value=value, low=low, high=high, n_runs=len(run_means), level=level, method=method)


def ratio_interval(
    a: Mapping[int, float], b: Mapping[int, float], level: float = LEVEL, spread: Spread | None = None
) -> Ratio:
    """Ratio a/b of run means keyed by round, with its interval and the p value of "no difference".

    Two or more common rounds are paired, and only they count: what a round does to both (a warm room, a noisy
    neighbour) cancels, and a paired t on the log ratios remains, BCa from 12 pairs up. Otherwise Welch's t on
    the logs (Welch, "The generalization of Student's problem", Biometrika 34, 1947). Assumes independent
    rounds, and for Welch also that nothing moved both sides together. With a shared spread the paired t is moderated
    by it (`shared_spread`).

    Raises:
        ValueError: A side without runs, a value that is not finite and positive, or a level outside (0, 1).
    """
    _check_level(level)
    difference = _log_difference(a, b, spread)
    n_pairs = len(difference.pairs)
    if n_pairs and not difference.moderated:
        value, low, high, method = _interval(difference.pairs, level)
        method = f"paired {method}"
    else:
        value, low, high, method = difference.mean, None, None, "none"
        if difference.df > 0:
            half_width = _t_quantile(level, difference.df) * difference.se
            low, high = value - half_width, value + half_width
            method = "paired moderated t" if difference.moderated else "Welch t"
    return Ratio(
        value=_exp(value),
        low=_exp_end(low),
        high=_exp_end(high),
        p=1.0 if difference.df == 0 else min(1.0, 2 * _t_tail(abs(difference.mean), difference)),
        n_pairs=n_pairs,
        level=level,
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
    difference = _log_difference(a, b, spread)
    if difference.df == 0:
        return 1.0
    return _t_tail(math.log1p(margin) - abs(difference.mean), difference)


def shared_spread(pairs: Sequence[tuple[Mapping[int, float], Mapping[int, float]]]) -> Spread | None:
    """What the paired ones of these say together about the spread of one; None for too few.

    Three rounds know their spread with two degrees of freedom, and t must allow for one that came out far too small.
    But a table has many pairs, measured alike, and how their spreads vary says how far each should be believed: the
    empirical Bayes estimate of Smyth, "Linear models and empirical Bayes methods for assessing differential
    expression in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3(1), 2004.

    Raises:
        ValueError: As `ratio_interval`.
    """
    from scipy import special  # noqa: PLC0415

    found = [difference for a, b in pairs if len((difference := _log_difference(a, b)).pairs) and difference.se > 0]
    if len(found) < SPREAD_FROM:
        return None
    halves = np.array([difference.df / 2 for difference in found])
    variances = np.array([difference.se**2 * len(difference.pairs) for difference in found])
    centred = np.log(variances) - special.digamma(halves) + np.log(halves)
    excess = float(centred.var(ddof=1) - special.polygamma(1, halves).mean())
    df = min(2 * _inverse_trigamma(excess), LARGEST_SPREAD_DF) if excess > 0 else LARGEST_SPREAD_DF
    log_variance = float(centred.mean() + special.digamma(df / 2) - math.log(df / 2))
    return Spread(variance=math.exp(log_variance), df=df)


def _inverse_trigamma(y: float) -> float:
    """Newton's method from below, as in the appendix of Smyth (2004)."""
    from scipy import special  # noqa: PLC0415

    x = 0.5 + 1 / y
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / y) / float(special.polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


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
        return _t_quantile(level, n - 1) * spread / math.sqrt(n) > target

    enough = 2
    while too_few(enough):
        enough *= 2
    short = enough // 2
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (middle, enough) if too_few(middle) else (short, middle)
    return enough


class _LogDifference(NamedTuple):
    """Mean of log a - log b with its standard error; df is 0 when spread is unknown."""

    mean: float
    se: float
    df: float
    pairs: Floats
    moderated: bool = False


def _log_difference(a: Mapping[int, float], b: Mapping[int, float], spread: Spread | None = None) -> _LogDifference:
    rounds = sorted(a.keys() & b.keys())
    logs_a, logs_b = (np.log(checked(list(side.values()), positive=True)) for side in (a, b))
    if len(rounds) >= 2:
        pairs = np.log([a[r] for r in rounds]) - np.log([b[r] for r in rounds])
        n = len(rounds)
        if spread is not None and n < BOOTSTRAP_FROM:
            df = spread.df + n - 1
            variance = (spread.df * spread.variance + (n - 1) * float(pairs.var(ddof=1))) / df
            return _LogDifference(float(pairs.mean()), math.sqrt(variance / n), df, pairs, moderated=True)
        return _LogDifference(float(pairs.mean()), float(pairs.std(ddof=1)) / math.sqrt(n), n - 1, pairs)
    unpaired = np.empty(0)
    mean = float(logs_a.mean() - logs_b.mean())
    if min(len(logs_a), len(logs_b)) < 2:
        return _LogDifference(mean, 0.0, 0, unpaired)
    variances = [max(float(x.var(ddof=1)), RELATIVE_ROUNDING**2) / len(x) for x in (logs_a, logs_b)]
    # Welch-Satterthwaite degrees of freedom
    total = sum(variances)
    parts = [(v / total) ** 2 / (len(x) - 1) for v, x in zip(variances, (logs_a, logs_b), strict=True)]
    return _LogDifference(mean, math.sqrt(total), 1 / sum(parts), unpaired)


def _interval(values: Floats, level: float) -> tuple[float, float | None, float | None, str]:
    _check_level(level)
    n = len(values)
    mean = float(values.mean())
    if n < 2:
        return mean, None, None, "none"
    ends = _bca(values, level) if n >= BOOTSTRAP_FROM else None
    if ends is not None:
        return mean, *ends, "BCa"
    half_width = _t_quantile(level, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean, mean - half_width, mean + half_width, "t"


def _bca(values: Floats, level: float) -> tuple[float, float] | None:
    """Ends of the expanded BCa interval of the mean, or None where it degenerates."""
    # scipy.stats takes a second to import, and most commands get by without it.
    from scipy import special, stats  # noqa: PLC0415

    n = len(values)
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    expanded = 1 - 2 * float(special.ndtr(-_t_quantile(level, n - 1) * math.sqrt(n / (n - 1))))
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


@cache
def _t_quantile(level: float, df: float) -> float:
    """Kept: rows of a table have the same few numbers of runs."""
    # Takes a sixth of a second to import, and `plan` gets by without it; so above.
    from scipy import special  # noqa: PLC0415

    _check_level(level)
    return float(-special.stdtrit(df, (1 - level) / 2))


def _t_tail(distance: float, difference: _LogDifference) -> float:
    from scipy import special  # noqa: PLC0415

    return float(special.stdtr(difference.df, -distance / max(difference.se, RELATIVE_ROUNDING)))


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")


def _exp_end(log: float | None) -> float | None:
    return None if log is None else _exp(log)


def _exp(log: float) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf
