from __future__ import annotations

import pytest

from paceline.report import numbers
from paceline.stats.estimate import Estimate


def q(value, low=None, high=None):
    return Estimate(value=value, low=low, high=high, level=0.95, unit="1", by="measured", n_runs=3)


@pytest.mark.parametrize(
    "quantity, expected",
    [
        (q(812.44, 801.2, 823.9), "812 (801–824)"),
        (q(1.3118, 1.2716, 1.3533), "1.312 (1.272–1.353)"),
        (q(12345.6), "12346"),
        (q(0.98765), "0.988"),
        (q(1.0, 1.0, 1.0), "1.00"),
        (q(0.0), "0.00"),
        (None, "-"),
    ],
)
def test_digits_are_those_that_the_interval_earns(quantity, expected):
    assert numbers.plain(quantity) == expected


def test_units_are_made_pretty():
    assert numbers.seconds(q(0.0459, 0.0452, 0.0466)) == "45.90 ms (45.20–46.60)"
    assert numbers.seconds(q(2.5e-5)) == "25.0 µs"
    assert numbers.size(q(412.0 * 2**20)) == "412 MiB"
    assert numbers.percent(q(0.92, 0.90, 0.94)) == "92.0 % (90.0–94.0)"


def test_small_share_is_not_called_nothing():
    assert [numbers.share(s) for s in (0.0, 0.001, 0.314)] == ["0 %", "<1 %", "31 %"]


def test_p_values_have_a_floor():
    assert [numbers.p_value(p) for p in (1e-9, 0.034, 0.5)] == ["p<0.001", "p=0.034", "p=0.5"]
