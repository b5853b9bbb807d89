"""Whether a number is normal: against the roofline and earlier runs."""

from __future__ import annotations

import pytest

from paceline.explain.normal import by_earlier, by_roofline
from paceline.record.peak import Peak, read_peak, write_peak

PEAK = Peak(flops_per_s=1e11, bytes_per_s=1e10, machine="here", measured=0.0)


def test_roofline_is_the_longer_of_arithmetic_and_memory():
    arithmetic = by_roofline(1.0, flops=5e10, moved_bytes=1e9, peak=PEAK, cores=1)
    memory = by_roofline(1.0, flops=1e10, moved_bytes=4e9, peak=PEAK, cores=1)

    assert (arithmetic.expected_s, memory.expected_s) == (pytest.approx(0.5), pytest.approx(0.4))
    assert "limited by arithmetic" in arithmetic.sentence
    assert "limited by memory traffic" in memory.sentence
    assert arithmetic.normal


def test_far_below_the_roofline_is_not_normal():
    yardstick = by_roofline(1.0, flops=1e10, moved_bytes=0.0, peak=PEAK, cores=1)

    assert yardstick.ratio == pytest.approx(10)
    assert not yardstick.normal


def test_earlier_runs_that_cannot_be_told_apart_are_normal():
    assert by_earlier([0.10, 0.12, 0.11], [0.11, 0.10, 0.12]).normal
    assert by_earlier([0.101, 0.101, 0.102], [0.1, 0.1, 0.101]).normal


def test_surely_slower_than_earlier_runs_is_not_normal():
    yardstick = by_earlier([0.150, 0.151, 0.152], [0.100, 0.101, 0.102])

    assert not yardstick.normal
    assert yardstick.sentence.startswith("slower than in 3 earlier runs")


def test_two_runs_each_can_tell_a_change_and_one_cannot():
    assert not by_earlier([0.1500, 0.1501], [0.1000, 0.1001]).normal
    assert by_earlier([0.15], [0.1000, 0.1001]).normal


def test_without_earlier_runs_nothing_is_said():
    assert by_earlier([0.1], []) is None


def test_peak_is_kept_by_machine(tmp_path):
    write_peak(tmp_path, PEAK)

    assert read_peak(tmp_path, "here") == PEAK
    assert read_peak(tmp_path, "there") is None
