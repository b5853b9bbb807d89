"""What lies behind a difference."""

from __future__ import annotations

import pytest

from paceline.compare import compare
from records import make_record, make_trial


def records(trial, **shape):
    return [make_record(trial=trial, repeat=repeat, **shape) for repeat in range(4)]


def only_pair(*groups):
    (pair,) = compare([record for group in groups for record in group]).verdicts
    return pair


def test_the_part_of_the_step_that_makes_most_of_a_difference_is_named_with_the_knobs_that_differ():
    fast = make_trial(knobs={"bucket": 1, "compile": True})
    slow = make_trial(knobs={"bucket": 2, "compile": True})

    pair = only_pair(records(fast, transfer_s=0.01), records(slow, step_s=0.09, transfer_s=0.05))

    assert pair.a == fast.id
    assert pair.factor.phase == "communication"
    assert pair.factor.seconds == pytest.approx(0.04, rel=0.05)
    assert pair.factor.share == pytest.approx(1.0, abs=0.05)
    assert pair.factor.differing == ("bucket: 1 | 2",)
    assert not pair.factor.derived


def test_rows_that_cannot_be_told_apart_have_no_factor():
    pair = only_pair(records(make_trial(knobs={"x": 1}), jitter=0.2), records(make_trial(knobs={"x": 2}), jitter=0.2))

    assert pair.factor is None
