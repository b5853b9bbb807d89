"""Steps of all ranks side by side: laid out whatever their order, summed up as the numbers say."""

import numpy as np
import pyarrow as pa
import pytest

from paceline.record.lockstep import StepLayout, rank_times
from paceline.record.summary import summarize
from records import make_record, uneven_input


def table(rows):
    return pa.table({"rank": [rank for rank, _ in rows], "step": [step for _, step in rows]})


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 1), (0, 2), (1, 1), (1, 2)],
        [(0, 2), (0, 1), (1, 2), (1, 1)],
        [(1, 2), (0, 1), (1, 1), (0, 2)],
        [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)],
    ],
    ids=["as stored", "backwards", "mixed", "a rank took more"],
)
def test_only_steps_that_all_ranks_have_count_in_their_order(rows):
    values = np.array([10.0 * rank + step for rank, step in rows])

    assert StepLayout(table(rows)).matrix(values).tolist() == [[1.0, 2.0], [11.0, 12.0]]


def test_ranks_without_a_common_step_have_none():
    assert StepLayout(table([(0, 1), (1, 2)])).n_steps == 0


def test_parts_of_a_step_are_those_that_were_put_in():
    together = summarize(make_record(step_s=0.05, transfer_s=0.01, jitter=0.0)).lockstep

    assert together.step_s == pytest.approx(0.05)
    assert together.exchange_s == pytest.approx(0.01)
    assert together.passes.mean_s == pytest.approx(0.04 * 0.9)
    assert together.late_input_s == together.starved_s == 0.0


def test_a_slow_rank_is_the_longest_of_its_step():
    together = summarize(make_record(slow_rank=1, slowdown=1.5, jitter=0.0)).lockstep
    fast, slow = together.passes.means_s

    assert slow == pytest.approx(1.5 * fast)
    assert together.passes.longest_s == pytest.approx(slow)


def test_input_that_comes_late_by_turns_is_waited_for():
    assert summarize(uneven_input(0.01)).lockstep.late_input_s == pytest.approx(0.005, rel=0.01)


def test_times_that_have_no_logarithm_have_no_variance():
    assert rank_times(np.array([[1.0, 0.0, 2.0]])).variance is None
    assert rank_times(np.ones((2, 2))).variance is None
