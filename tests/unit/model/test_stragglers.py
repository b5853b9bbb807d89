"""The slowest of many: against draws, and estimated from draws."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.model.equations.stragglers import expected_slowest, straggling_of
from paceline.record.lockstep import rank_times


@pytest.mark.parametrize("workers", [1, 2, 8, 64, 1024])
@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2])
def test_the_mean_of_the_slowest_is_that_of_many_draws(workers, spread):
    draws = np.random.default_rng(0).normal(size=(4000, workers))
    slowest = np.exp(spread * draws - spread**2 / 2).max(axis=1)

    assert expected_slowest(workers, spread) == pytest.approx(slowest.mean(), abs=4 * slowest.std() / 60 + 1e-9)


def test_spread_and_persistence_are_found_again():
    generator = np.random.default_rng(1)
    state = generator.normal(size=8)
    rows = []
    for _ in range(2000):
        state = 0.6 * state + 0.8 * generator.normal(size=8)
        rows.append(np.exp(0.05 * state))
    straggling = straggling_of(rank_times(np.array(rows).T))

    assert straggling.spread == pytest.approx(0.05, rel=0.1)
    assert straggling.persistence == pytest.approx(0.6, abs=0.05)
    assert straggling.slowest == 1.0


def test_a_slow_worker_is_told_from_chance():
    times = np.random.default_rng(2).normal(1.0, 0.01, size=(4, 100))
    times[2] *= 1.5

    assert straggling_of(rank_times(times)).slowest == pytest.approx(1.5, rel=0.01)


@pytest.mark.parametrize("workers", [2, 8, 64])
@pytest.mark.parametrize("slowest", [1.02, 1.5])
def test_one_that_is_slower_for_good_is_waited_for_most_of_the_time(workers, slowest):
    factors = np.exp(0.02 * np.random.default_rng(0).normal(size=(4000, workers)) - 0.02**2 / 2)
    factors[:, 0] *= slowest
    waited = factors.max(axis=1)

    assert expected_slowest(workers, 0.02, slowest) == pytest.approx(waited.mean(), abs=4 * waited.std() / 60)


def test_what_all_workers_have_in_common_lets_nobody_wait():
    together = np.random.default_rng(3).normal(1.0, 0.2, size=(1, 200)).clip(0.3)

    assert straggling_of(rank_times(np.repeat(together, 4, axis=0))).spread == pytest.approx(0.0, abs=1e-9)


def test_too_few_steps_tell_nothing():
    assert straggling_of(rank_times(np.ones((2, 2)))).spread == 0.0
