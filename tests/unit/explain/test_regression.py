"""Change-points: found where they are, not found where there are none, with their evidence."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.explain.regression import Moment, change_points


def series(steps, versions=None):
    versions = versions or ["1"] * len(steps)
    return [
        Moment(started=1000.0 + index, step_s=float(step), run=f"run-{index}", versions={"paceline": version})
        for index, (step, version) in enumerate(zip(steps, versions, strict=True))
    ]


def noisy(count, mean=0.1, seed=0, spread=0.01):
    return mean * np.exp(spread * np.random.default_rng(seed).normal(size=count))


def test_slower_since_a_run_is_found_with_what_changed_there():
    steps = [*noisy(6), *noisy(6, 0.11, seed=1)]
    (change,) = change_points({"trial": series(steps, ["1"] * 6 + ["2"] * 6)})

    assert change.slower
    assert change.ratio == pytest.approx(1.1, rel=0.02)
    assert (change.last_before, change.first_after) == ("run-5", "run-6")
    assert (change.before, change.after) == (6, 6)
    assert change.changed == {"paceline": ("1", "2")}
    assert change.p < 0.05


def test_order_of_records_does_not_matter():
    moments = series([*noisy(5), *noisy(5, 0.12, seed=1)])

    assert change_points({"t": moments}) == change_points({"t": moments[::-1]})


def test_faster_is_a_change_and_no_regression():
    (change,) = change_points({"trial": series([*noisy(6), *noisy(6, 0.08, seed=1)])})

    assert not change.slower


def test_small_changes_do_not_count():
    steps = [*noisy(8, spread=1e-4), *noisy(8, 0.101, seed=1, spread=1e-4)]

    assert change_points({"trial": series(steps)}) == []
    assert len(change_points({"trial": series(steps)}, least=0.005)) == 1


def test_few_runs_tell_nothing():
    assert change_points({"trial": series([0.1, 0.1, 0.1, 0.2, 0.2])}) == []


def test_chance_is_seldom_called_a_change():
    # 100 histories without a change, all tested at once: Holm keeps any false one below 5 %.
    quiet = {f"trial-{seed}": series(noisy(12, seed=seed, spread=0.05)) for seed in range(100)}

    assert change_points(quiet) == []
