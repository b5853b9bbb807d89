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


def test_communication_and_update_are_compared_together_where_one_row_cannot_tell_them_apart():
    # The slow one exchanges longer, and a part of that is called update.
    mixed = {"phases_mixed": {"phases": ["update", "communication"], "why": "sends what it has updated"}}
    fast, slow = make_trial(knobs={"x": 1}), make_trial(knobs={"x": 2})

    pair = only_pair(records(fast, step_s=0.05), records(slow, step_s=0.1, transfer_s=0.04, facts=mixed))

    # Of a step of 100 ms with 40 of exchange, 60 compute and 8 % of that update; of 50 with 10, 40.
    assert pair.factor.phase == "communication and update together"
    assert pair.factor.seconds == pytest.approx(0.04 + 0.08 * 0.06 - 0.01 - 0.08 * 0.04, rel=0.05)


def test_all_that_two_rows_mix_is_one_part():
    updating = {"phases_mixed": {"phases": ["communication", "update"], "why": "a"}}
    computing = {"phases_mixed": {"phases": ["forward", "backward", "communication"], "why": "b"}}
    fast, slow = make_trial(knobs={"x": 1}), make_trial(knobs={"x": 2})

    pair = only_pair(records(fast, facts=updating), records(slow, step_s=0.1, facts=computing))

    assert pair.factor.phase == "forward, backward, communication and update together"
