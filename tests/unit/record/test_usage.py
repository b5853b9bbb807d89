from __future__ import annotations

import numpy as np
import pytest

from paceline.record.meter import meter_table
from paceline.record.usage import MOST_POINTS, Series, thinned, usage_of
from records import make_record


def metered(cpu, *, period=0.5, names=("worker0",), rss=1e8, times=None):
    times = [period * at for at in range(len(cpu))] if times is None else times
    samples = [
        {
            "t_s": t,
            "processes": {
                name: {"cpu_s": total, "rss_bytes": rss, "read_bytes": 0, "written_bytes": 0} for name in names
            },
        }
        for t, total in zip(times, cpu, strict=True)
    ]
    return make_record(resources={"period_s": period, "network": None}, meter=meter_table(samples))


def test_cpu_is_the_growth_of_the_counter():
    (used,) = usage_of(metered([0.0, 0.5, 0.75, 0.75]))

    assert used.cores.values == (1.0, 0.5, 0.0)
    assert used.cores.t_s == (0.5, 1.0, 1.5)
    assert used.mean_cores == pytest.approx(0.5)
    assert (used.peak_cores, used.peak_rss_bytes) == (1.0, 1e8)


def test_child_that_ends_is_no_negative_rate():
    (used,) = usage_of(metered([0.0, 1.0, 0.2, 0.7]))

    assert min(used.cores.values) == 0.0


def test_last_sample_right_after_a_tick_is_no_rate():
    (used,) = usage_of(metered([0.0, 0.5, 1.0, 1.1], times=[0.0, 0.5, 1.0, 1.01]))

    assert used.cores.t_s == (0.5, 1.0)
    assert len(used.rss_bytes.t_s) == 4


def test_run_that_was_hardly_seen_has_no_curve():
    assert usage_of(metered([0.0, 0.1])) == []
    assert usage_of(make_record()) == []


def test_processes_come_by_number():
    used = usage_of(metered([0.0, 0.5, 1.0], names=("worker10", "worker2", "server0")))

    assert [one.process for one in used] == ["server0", "worker2", "worker10"]


def test_long_curve_keeps_its_lowest_and_highest():
    values = np.random.default_rng(0).normal(size=10_000)
    values[[4321, 8765]] = 50.0, -50.0
    kept = thinned(Series(t_s=tuple(map(float, range(10_000))), values=tuple(values.tolist())), MOST_POINTS)

    assert len(kept.t_s) <= MOST_POINTS
    assert (max(kept.values), min(kept.values)) == (50.0, -50.0)
    assert list(kept.t_s) == sorted(kept.t_s)


def test_many_ranks_share_the_points():
    used = usage_of(metered(list(np.linspace(0, 500, 1000)), names=tuple(f"worker{n}" for n in range(64))))

    assert sum(len(one.cores.t_s) for one in used) <= 2400
