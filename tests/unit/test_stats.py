"""Intervals that cover as often as they say, tests worked by hand, and honest answers to poor data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, t

from paceline.stats import (
    ALPHA,
    BOOTSTRAP_FROM,
    FEWEST_WITH_SPREAD,
    LEAST_RUNS,
    MARGIN,
    Verdict,
    drift,
    equivalent,
    holm,
    mean_interval,
    plain_interval,
    ratio_interval,
    relative_spread,
    runs_needed,
    shared_spread,
    verdict,
)
from paceline.stats.estimate import Estimate
from paceline.stats.intervals import ends_of_mean

# Derandomised, so that a red test is red for everyone.
many_examples = settings(max_examples=50, derandomize=True, database=None)
few_examples = settings(many_examples, max_examples=20)

positive = st.floats(min_value=1e-6, max_value=1e6)
few_runs = st.lists(positive, min_size=2, max_size=BOOTSTRAP_FROM - 1)
scales = st.floats(min_value=1e-3, max_value=1e3)


def rounds(values: list[float] | np.ndarray) -> dict[int, float]:
    return {index: float(value) for index, value in enumerate(values)}


def lognormal(rng: np.random.Generator, n: int, spread: float = 0.05) -> list[float]:
    return [float(x) for x in np.exp(rng.normal(0.0, spread, n))]


def geometric(runs: list[float], level: float = 0.95) -> Estimate:
    """The geometric mean with its interval, also of two runs."""
    return mean_interval(runs, unit="s", level=level, least_runs=FEWEST_WITH_SPREAD)


def arithmetic(runs: list[float], level: float = 0.95) -> Estimate:
    """The arithmetic mean with its interval, also of two runs."""
    return plain_interval(runs, unit="1", level=level, least_runs=FEWEST_WITH_SPREAD)


def method(values: list[float], level: float = 0.95) -> str:
    """How the interval of the geometric mean is found."""
    return ends_of_mean(np.log(values), level).method


def assert_rate(expected: float, hits: int, trials: int) -> None:
    """Fail only where a correct rate would fail once in a thousand seeds."""
    low, high = binom.interval(0.999, trials, expected)

    assert low <= hits <= high, f"{hits} of {trials}, expected {expected:.0%}"


# Intervals


@pytest.mark.parametrize(("n", "trials", "expected"), [(3, 2000, "t"), (5, 2000, "t"), (15, 300, "BCa")])
def test_interval_covers_the_truth_as_often_as_it_says(n: int, trials: int, expected: str) -> None:
    rng = np.random.default_rng(n)
    samples = [lognormal(rng, n) for _ in range(trials)]

    assert {expected} == {method(runs) for runs in samples}
    assert_rate(0.95, sum(bool(geometric(runs).contains(1.0)) for runs in samples), trials)


def test_t_interval_of_logs_worked_by_hand() -> None:
    # logs -1, 0, 1 (base e): mean 0, deviation 1, so ± t(0.975, 2) / sqrt 3 = 4.302653 / 1.732051
    mean = geometric([math.exp(-1), 1.0, math.e])

    assert pytest.approx(1.0) == mean.value
    assert pytest.approx((math.exp(-2.484138), math.exp(2.484138)), rel=1e-5) == mean.interval
    assert (mean.n_runs, mean.level, mean.unit, mean.by) == (3, 0.95, "s", "measured")


def test_plain_interval_takes_zero_and_negative_values() -> None:
    mean = arithmetic([-1.0, 0.0, 1.0])

    assert mean.value == 0.0
    assert pytest.approx((-2.484138, 2.484138), rel=1e-5) == mean.interval
    assert mean.relative_half_width is None


@many_examples
@given(few_runs, scales)
def test_t_interval_scales_with_the_unit(runs: list[float], scale: float) -> None:
    before, after = geometric(runs), geometric([scale * x for x in runs])

    assert pytest.approx(scale * before.value) == after.value
    assert pytest.approx([scale * x for x in before.interval], rel=1e-6) == list(after.interval)


@few_examples
@given(st.lists(st.sampled_from([1.0, 1.01, 1.02, 1.5]) | positive, min_size=12, max_size=20), scales)
def test_bca_interval_scales_with_the_unit_also_with_ties(runs: list[float], scale: float) -> None:
    before, after = geometric(runs), geometric([scale * x for x in runs])

    assert pytest.approx([scale * x for x in before.interval], rel=1e-5) == list(after.interval)


@few_examples
@given(st.lists(positive, min_size=2, max_size=16), st.randoms(use_true_random=False))
def test_order_of_runs_does_not_matter_and_value_lies_inside(runs: list[float], random: object) -> None:
    mean = geometric(runs)
    shuffled = list(runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    low, high = mean.interval
    assert low <= mean.value * (1 + 1e-9)
    assert mean.value <= high * (1 + 1e-9)
    assert min(runs) * (1 - 1e-9) <= mean.value <= max(runs) * (1 + 1e-9)
    assert pytest.approx([low, high], rel=1e-6) == list(geometric(shuffled).interval)


@many_examples
@given(few_runs)
def test_interval_of_reciprocals_is_the_reciprocal_interval(runs: list[float]) -> None:
    low, high = geometric(runs).interval

    assert pytest.approx([1 / high, 1 / low], rel=1e-6) == list(geometric([1 / x for x in runs]).interval)


@many_examples
@given(few_runs)
def test_higher_level_gives_wider_interval(runs: list[float]) -> None:
    (low90, high90), (low99, high99) = (geometric(runs, level).interval for level in (0.90, 0.99))

    assert low99 <= low90 * (1 + 1e-9)
    assert high90 <= high99 * (1 + 1e-9)


def test_bca_is_deterministic_and_leans_towards_the_long_tail() -> None:
    runs = [1.0 + 0.001 * i for i in range(14)] + [2.0]
    mean = geometric(runs)

    assert mean == geometric(runs)
    assert method(runs) == "BCa"
    low, high = mean.interval
    assert mean.value / low < high / mean.value


@pytest.mark.parametrize("n", [12, 15, 30])
def test_bca_of_normal_runs_is_as_wide_as_t(n: int) -> None:
    # Without its expansion BCa would be 15 % (12 runs) to 6 % (30 runs) narrower, and cover too seldom.
    scores = norm.ppf((np.arange(n) + 0.5) / n)
    low, high = arithmetic(scores.tolist()).interval

    assert high - low == pytest.approx(2 * t.ppf(0.975, n - 1) * scores.std(ddof=1) / math.sqrt(n), rel=0.04)


def test_tail_too_thin_for_the_bootstrap_falls_back_to_t() -> None:
    assert method([1.0 + 0.01 * i for i in range(12)], level=0.9999) == "t"


def test_one_run_has_a_value_and_no_interval() -> None:
    expected = Estimate(value=3.0, low=None, high=None, level=0.95, unit="1", by="measured", n_runs=1)

    assert expected == arithmetic([3.0])
    assert method([3.0]) == "none"
    assert geometric([3.0]).ends is None
    assert geometric([3.0]).value == pytest.approx(3.0)
    assert geometric([3.0]).relative_half_width is None


@pytest.mark.parametrize("interval_of", [mean_interval, plain_interval])
def test_a_mean_has_an_interval_from_three_runs_up(interval_of: Callable[..., Estimate]) -> None:
    two, three = interval_of([1.0, 1.1], unit="s"), interval_of([1.0, 1.1, 1.2], unit="s", by="simulated", level=0.9)

    assert (two.ends, two.n_runs) == (None, 2)
    assert (three.contains(1.1), three.n_runs, three.by, three.level) == (True, 3, "simulated", 0.9)


@pytest.mark.parametrize("interval_of", [mean_interval, plain_interval])
def test_a_rule_may_ask_for_the_interval_of_two_runs_but_not_of_one(interval_of: Callable[..., Estimate]) -> None:
    assert interval_of([1.0, 1.1], unit="s", least_runs=FEWEST_WITH_SPREAD).contains(1.05)
    assert interval_of([1.0], unit="s", least_runs=1).ends is None


@pytest.mark.parametrize("n", [2, 5, 12, 30])
@pytest.mark.parametrize("interval_of", [geometric, arithmetic])
def test_equal_runs_give_an_interval_of_no_width_by_t(n: int, interval_of: Callable[[list[float]], Estimate]) -> None:
    mean = interval_of([0.3] * n)

    assert method([0.3] * n) == "t"
    assert pytest.approx((0.3, 0.3)) == mean.interval
    assert mean.relative_half_width == pytest.approx(0.0, abs=1e-9)


def test_an_end_beyond_floating_point_is_infinite_not_an_error() -> None:
    assert geometric([1e-300, 1e300]).interval == (0.0, math.inf)


# Ratios


def test_pairing_by_round_removes_common_drift() -> None:
    rng = np.random.default_rng(7)
    warming = np.linspace(1.0, 2.0, 8)
    b = warming * np.exp(rng.normal(0.0, 0.005, 8))
    a = 1.05 * warming * np.exp(rng.normal(0.0, 0.005, 8))
    paired = ratio_interval(rounds(a), rounds(b))
    unpaired = ratio_interval(rounds(a), {100 + r: x for r, x in rounds(b).items()})

    assert (paired.method, paired.n_pairs) == ("paired t", 8)
    assert (unpaired.method, unpaired.n_pairs) == ("Welch t", 0)
    low, high = paired.ratio.interval
    assert 1.0 < low < 1.05 < high < 1.07
    assert paired.p < 0.001
    assert unpaired.p > 0.5
    assert unpaired.ratio.value == pytest.approx(paired.ratio.value)


def test_only_common_rounds_are_paired() -> None:
    test = ratio_interval({0: 2.0, 1: 2.2, 2: 99.0}, {0: 1.0, 1: 1.1, 7: 0.01})

    assert test.n_pairs == 2
    assert test.ratio.value == pytest.approx(2.0)


def test_welch_worked_by_hand() -> None:
    # logs a: 0, 2 (mean 1, variance 2); logs b: 0, 0.2 (mean 0.1, variance 0.02); standard error
    # sqrt(1 + 0.01); df = 1.01² / (1² + 0.01²) = 1.02; t = 0.9 / 1.00499 = 0.89553
    a, b = {0: 1.0, 1: math.exp(2.0)}, {2: 1.0, 3: math.exp(0.2)}
    test = ratio_interval(a, b)

    assert test.ratio.value == pytest.approx(math.exp(0.9))
    # with df = 1 exactly, p would be 1 - 2/π atan(0.89553) = 0.5351
    assert test.p == pytest.approx(0.5351, abs=0.003)
    low, high = test.ratio.interval
    assert low * high == pytest.approx(math.exp(1.8))


def test_paired_t_worked_by_hand() -> None:
    # log ratios 0.1, 0.3: mean 0.2, standard error 0.1, t = 2 with one degree of freedom (Cauchy)
    test = ratio_interval({0: math.exp(0.1), 1: math.exp(0.3)}, {0: 1.0, 1: 1.0})

    assert test.p == pytest.approx(1 - 2 / math.pi * math.atan(2.0))
    assert pytest.approx((math.exp(0.2 - 1.2706205), math.exp(0.2 + 1.2706205)), rel=1e-5) == test.ratio.interval


def test_a_ratio_rests_on_its_pairs_or_on_the_smaller_side() -> None:
    paired = ratio_interval({0: 2.0, 1: 2.2, 2: 2.1}, {0: 1.0, 1: 1.1, 7: 1.0}, by="simulated").ratio
    unpaired = ratio_interval({0: 2.0, 1: 2.2, 2: 2.1, 3: 2.1}, {7: 1.0, 8: 1.1, 9: 1.0}).ratio

    assert (paired.n_runs, paired.unit, paired.by) == (2, "1", "simulated")
    assert (unpaired.n_runs, unpaired.by) == (3, "derived")


def test_a_test_of_two_rounds_has_an_interval_unless_more_are_asked_for() -> None:
    a, b = {0: 2.0, 1: 2.2}, {0: 1.0, 1: 1.0}
    tested, shown = ratio_interval(a, b), ratio_interval(a, b, least_runs=LEAST_RUNS)

    assert tested.ratio.contains(2.1)
    assert shown.ratio.ends is None
    assert (shown.ratio.value, shown.p, shown.method) == (tested.ratio.value, tested.p, tested.method)
    assert shown.spread_known


def test_bca_from_twelve_pairs() -> None:
    rng = np.random.default_rng(3)
    a, b = rounds(lognormal(rng, 12)), rounds(lognormal(rng, 12))

    assert ratio_interval(a, b).method == "paired BCa"
    del a[0]
    assert ratio_interval(a, b).method == "paired t"


@pytest.mark.parametrize("shift", [0, 100], ids=["paired", "Welch"])
def test_no_difference_is_called_one_as_rarely_as_promised(shift: int) -> None:
    rng = np.random.default_rng(11)
    trials = 1500
    false_alarms = 0
    for _ in range(trials):
        a, b = lognormal(rng, 5), lognormal(rng, 5)
        false_alarms += ratio_interval(rounds(a), {shift + r: x for r, x in rounds(b).items()}).p < ALPHA

    assert_rate(0.05, false_alarms, trials)


@many_examples
@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=8), scales, st.sampled_from([0, 100]))
def test_ratio_ignores_the_unit_and_swapping_inverts_it(
    pairs: list[tuple[float, float]], scale: float, shift: int
) -> None:
    a = rounds([x for x, _ in pairs])
    b = {shift + r: y for r, y in rounds([y for _, y in pairs]).items()}
    test, swapped = ratio_interval(a, b), ratio_interval(b, a)
    scaled = ratio_interval({r: scale * x for r, x in a.items()}, {r: scale * x for r, x in b.items()})

    assert test.ratio.value == pytest.approx(1 / swapped.ratio.value)
    assert test.ratio.value == pytest.approx(scaled.ratio.value)
    assert test.p == pytest.approx(swapped.p, rel=1e-3, abs=1e-3)
    assert test.p == pytest.approx(scaled.p, rel=1e-3, abs=1e-3)
    if len(pairs) > 1:
        assert pytest.approx(test.ratio.interval, rel=1e-5) == scaled.ratio.interval


def test_single_runs_give_a_ratio_and_no_evidence() -> None:
    test = ratio_interval({0: 3.0}, {0: 2.0})

    assert test.ratio.value == pytest.approx(1.5)
    assert (test.ratio.ends, test.p, test.n_pairs, test.method) == (None, 1.0, 0, "none")
    assert not test.spread_known
    assert equivalent({0: 3.0}, {0: 3.0}) == 1.0


@pytest.mark.parametrize("other", [{0: 3.0, 1: 3.0, 2: 3.0}, {5: 3.0, 6: 3.0, 7: 3.0, 8: 3.0}])
def test_identical_values_are_equal_and_not_different(other: dict[int, float]) -> None:
    same = {0: 3.0, 1: 3.0, 2: 3.0}

    assert ratio_interval(same, other).p > 0.9
    assert equivalent(same, other) < 1e-9


# Equivalence, Holm, verdicts


def test_tost_worked_by_hand() -> None:
    # log ratios 0, 0.01, -0.01, 0: mean 0, deviation sqrt(0.0002 / 3), standard error 0.00408248;
    # t = ln 1.02 / 0.00408248 = 4.85062 with three degrees of freedom, whose distribution is elementary
    a = rounds([1.0, math.exp(0.01), math.exp(-0.01), 1.0])
    x = math.log(1.02) / 0.00408248290 / math.sqrt(3)
    upper_tail = 0.5 - (x / (1 + x * x) + math.atan(x)) / math.pi

    assert upper_tail == pytest.approx(0.00836, abs=5e-5)
    assert equivalent(a, rounds([1.0] * 4), margin=0.02) == pytest.approx(upper_tail, rel=1e-6)


def test_tost_at_the_margin_errs_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(13)
    trials = 1500
    wrong = sum(
        equivalent(rounds([1.02 * x for x in lognormal(rng, 6, 0.003)]), rounds(lognormal(rng, 6, 0.003))) < ALPHA
        for _ in range(trials)
    )

    assert_rate(0.05, wrong, trials)


@many_examples
@given(st.lists(st.floats(0.97, 1.03), min_size=2, max_size=11))
def test_tost_agrees_with_the_ninety_percent_interval(ratios: list[float]) -> None:
    a, b = rounds(ratios), rounds([1.0] * len(ratios))
    low, high = ratio_interval(a, b, level=0.90).ratio.interval
    distance = min(math.log(low) + math.log1p(MARGIN), math.log1p(MARGIN) - math.log(high))
    if abs(distance) > 1e-9:
        assert (distance > 0) == (equivalent(a, b) < 0.05)


@many_examples
@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=8))
def test_wider_margin_is_easier_to_meet(pairs: list[tuple[float, float]]) -> None:
    a, b = rounds([x for x, _ in pairs]), rounds([y for _, y in pairs])

    assert equivalent(a, b, margin=0.10) <= equivalent(a, b, margin=0.02)


def test_holm_worked_by_hand() -> None:
    # sorted 0.005 0.01 0.03 0.04, times 4 3 2 1: 0.02 0.03 0.06 0.04, made non-decreasing
    assert pytest.approx([0.03, 0.06, 0.06, 0.02]) == holm([0.01, 0.04, 0.03, 0.005])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@many_examples
@given(st.lists(st.floats(0.0, 1.0), max_size=20))
def test_holm_keeps_the_order_and_lies_between_none_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)

    assert all(p <= q <= min(1.0, len(p_values) * p) or p == q for p, q in zip(p_values, adjusted, strict=True))
    by_raw = [q for _, q in sorted(zip(p_values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


@pytest.mark.parametrize(
    ("difference_p", "equivalence_p", "expected", "words"),
    [
        (0.001, 0.9, Verdict.DIFFERENT, "different"),
        (0.6, 0.001, Verdict.EQUAL, "equal within the margin"),
        (0.001, 0.001, Verdict.EQUAL, "equal within the margin"),
        (0.6, 0.9, Verdict.UNDECIDED, "cannot be told apart"),
        (0.05, 0.05, Verdict.UNDECIDED, "cannot be told apart"),
    ],
)
def test_three_verdicts(difference_p: float, equivalence_p: float, expected: Verdict, words: str) -> None:
    conclusion = verdict(difference_p, equivalence_p)

    assert expected is conclusion
    assert words == conclusion.words


def test_a_real_difference_too_small_to_matter_is_equal() -> None:
    rng = np.random.default_rng(17)
    b = np.exp(rng.normal(0.0, 0.001, 10))
    a = 1.005 * np.exp(rng.normal(0.0, 0.001, 10))
    difference_p, equivalence_p = ratio_interval(rounds(a), rounds(b)).p, equivalent(rounds(a), rounds(b))

    assert difference_p < 0.001
    assert verdict(difference_p, equivalence_p) is Verdict.EQUAL


# Planning


def test_runs_needed_is_the_fewest_that_meet_the_target() -> None:
    # logs -0.01, 0, 0.01: deviation 0.01. n = 4 gives 3.182 * 0.01 / 2 = 0.0159 < ln 1.02 = 0.0198,
    # n = 3 gives 4.303 * 0.01 / 1.732 = 0.0248
    runs = [math.exp(-0.01), 1.0, math.exp(0.01)]

    assert runs_needed(runs, 0.02) == 4
    assert runs_needed(runs, 0.03) == 3
    # for many runs (z · deviation / target)² = (1.96 * 0.01 / 0.0009995)² = 384.6, t adds a few
    assert 385 <= runs_needed(runs, 0.001) <= 390


@many_examples
@given(few_runs, st.floats(0.01, 0.5), scales)
def test_runs_needed_agrees_with_the_interval_and_ignores_the_unit(
    runs: list[float], target: float, scale: float
) -> None:
    mean = geometric(runs)
    excess = mean.interval[1] / mean.value / (1 + target) - 1
    if abs(excess) > 1e-9:
        assert (runs_needed(runs, target) <= len(runs)) == (excess < 0)
    assert runs_needed(runs, target) == pytest.approx(runs_needed([scale * x for x in runs], target), abs=1)


def test_runs_needed_is_two_when_nothing_is_known_or_nothing_varies() -> None:
    assert runs_needed([5.0], 0.02) == 2
    assert runs_needed([5.0, 5.0, 5.0], 0.02) == 2


# Inside one run


@many_examples
@given(st.lists(positive, min_size=3, max_size=30), scales)
def test_spread_and_drift_ignore_the_unit(samples: list[float], scale: float) -> None:
    scaled = [scale * x for x in samples]

    assert relative_spread(samples) == pytest.approx(relative_spread(scaled), rel=1e-6, abs=1e-9)
    assert drift(samples).relative_change == pytest.approx(drift(scaled).relative_change, rel=1e-6, abs=1e-9)


def test_relative_spread_worked_by_hand() -> None:
    assert relative_spread([9.0, 10.0, 11.0]) == pytest.approx(0.1)


@pytest.mark.parametrize("n", [50, 3000])
def test_drift_is_found_in_spite_of_outliers(n: int) -> None:
    rng = np.random.default_rng(19)
    samples = np.linspace(0.975, 1.025, n) + rng.normal(0.0, 0.003, n)
    samples[:: n // 10] *= 3.0
    found = drift(samples.tolist())

    assert found.relative_change == pytest.approx(0.05, abs=0.01)
    assert found.p < 1e-6


def test_no_drift_is_found_in_noise_or_in_equal_steps() -> None:
    noise = drift((1.0 + np.random.default_rng(23).normal(0.0, 0.01, 200)).tolist())

    assert abs(noise.relative_change) < 0.005
    assert noise.p > 0.05
    assert drift([2.0] * 10) == (0.0, 1.0)


def test_three_steps_that_rise_by_a_tenth_drift_by_a_tenth_and_prove_nothing() -> None:
    found = drift([0.95, 1.0, 1.05])

    assert found.relative_change == pytest.approx(0.1)
    assert found.p == pytest.approx(1 / 3)


# Refusals


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [1.0, math.inf]])
@pytest.mark.parametrize(
    "function",
    [
        geometric,
        arithmetic,
        relative_spread,
        drift,
        lambda values: runs_needed(values, 0.02),
        lambda values: ratio_interval(rounds(values), {0: 1.0, 1: 1.0}),
        lambda values: ratio_interval({0: 1.0, 1: 1.0}, rounds(values)),
        lambda values: equivalent(rounds(values), {0: 1.0, 1: 1.0}),
    ],
)
def test_missing_or_non_finite_values_are_refused(function: Callable[[list[float]], object], bad: list[float]) -> None:
    with pytest.raises(ValueError, match=r"finite|at least|lag"):
        function(bad)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_logarithms_of_nothing_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        geometric([1.0, bad])


@pytest.mark.parametrize(
    "call",
    [
        lambda: geometric([1.0, 2.0], level=95),
        lambda: arithmetic([1.0], level=1.0),
        lambda: ratio_interval({0: 1.0}, {0: 1.0}, level=0.0),
        lambda: equivalent({0: 1.0}, {0: 1.0}, margin=0.0),
        lambda: equivalent({0: 1.0}, {0: 1.0}, margin=math.nan),
        lambda: runs_needed([1.0, 2.0], 0.0),
        lambda: runs_needed([1.0, 2.0], math.nan),
        lambda: holm([0.5, math.nan]),
        lambda: holm([1.5]),
        lambda: verdict(math.nan, 0.5),
        lambda: relative_spread([1.0]),
        lambda: drift([1.0, 2.0]),
    ],
)
def test_senseless_requests_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"level|margin|target|p values|lag|at least"):
        call()


def equal_tables(seed: int, *, noise: float, rounds: int = 3) -> list[tuple[dict[int, float], dict[int, float]]]:
    """All pairs of two questions with seven equal trials each, of unequal noise, with something that moves whole rounds."""
    generator = np.random.default_rng(seed)
    pairs = []
    for _ in range(2):
        spreads = 0.08 * np.exp(generator.normal(0, noise, 7))
        logs = generator.normal(0, 1, (7, rounds)) * spreads[:, None] + generator.normal(0, 0.1, rounds)
        trials = [dict(enumerate(np.exp(row))) for row in logs]
        pairs += list(itertools.combinations(trials, 2))
    return pairs


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_shared_spread_calls_equal_trials_different_no_more_often_than_promised(noise: float) -> None:
    tables = [equal_tables(seed, noise=noise) for seed in range(200)]
    wrong = 0
    for pairs in tables:
        spread = shared_spread(pairs)
        wrong += min(holm([ratio_interval(a, b, spread=spread).p for a, b in pairs])) < ALPHA

    # 5 % of 200 is 10; 18 and more would be seen once in a hundred times.
    assert wrong <= 17


def test_shared_spread_tells_apart_what_three_rounds_alone_cannot() -> None:
    pairs = equal_tables(1, noise=0.3)
    pairs = [({turn: 2 * value for turn, value in a.items()}, b) for a, b in pairs]
    spread = shared_spread(pairs)

    alone = holm([ratio_interval(a, b).p for a, b in pairs])
    together = holm([ratio_interval(a, b, spread=spread).p for a, b in pairs])
    assert sum(p < ALPHA for p in alone) < len(pairs) / 2
    assert sum(p < ALPHA for p in together) > 0.9 * len(pairs)


def test_shared_spread_lies_between_own_and_common_and_says_so() -> None:
    pairs = equal_tables(2, noise=0.5)
    spread = shared_spread(pairs)
    assert spread is not None
    assert 0 < spread.df <= 8
    tight = ({0: 1.0, 1: 1.0001, 2: 1.0}, {0: 1.0, 1: 1.0, 2: 1.0001})
    moderated, alone = ratio_interval(*tight, spread=spread), ratio_interval(*tight)

    assert moderated.method == "paired moderated t"
    (low, high), (own_low, own_high) = moderated.ratio.interval, alone.ratio.interval
    assert high - low > 10 * (own_high - own_low)


def test_few_pairs_share_nothing() -> None:
    assert shared_spread(equal_tables(3, noise=0.0)[:39]) is None


def test_many_rounds_rest_on_themselves() -> None:
    pairs = equal_tables(4, noise=0.5, rounds=12)
    assert ratio_interval(*pairs[0], spread=shared_spread(pairs)) == ratio_interval(*pairs[0])


def test_tests_that_were_not_made_make_the_others_stricter():
    assert holm([0.001, 0.02], further=8) == pytest.approx([0.01, 0.18])
    assert holm([0.001, 0.02], further=0) == holm([0.001, 0.02])
