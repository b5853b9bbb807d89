"""Where a measured step goes, by cause: the parts sum up to it, and what was made of a record is found in it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from paceline.compare import compare
from paceline.explain.spent import EXCHANGE, mean_step_s, spent_of
from paceline.model.equations.terms import COMPUTE, CONTENTION, INPUT, OVERHEAD, STRAGGLER
from paceline.stats.known_by import DERIVED, MEASURED
from records import failed_record, fused_record, make_record, uneven_input


def starved_record(seconds: float, **changes):
    record = make_record(workers=1, step_s=0.1, jitter=0.0, **changes)
    column = pa.array(np.full(record.samples.num_rows, seconds))
    return replace(record, samples=record.samples.append_column("starved_s", column))


def test_parts_sum_up_to_the_step():
    spent = spent_of([make_record(step_s=0.05, repeat=repeat) for repeat in range(3)])

    assert sum(spent.seconds.values()) == pytest.approx(spent.step_s)
    assert spent.step_s == pytest.approx(0.05, rel=0.05)
    assert len(spent.runs) == 3
    assert spent.by == MEASURED


def test_step_is_the_one_that_the_comparison_shows():
    records = [make_record(step_s=step, repeat=repeat) for repeat, step in enumerate((0.05, 0.1, 0.2))]
    (row,) = compare(records).rows

    assert spent_of(records).step_s == pytest.approx(row.step_s.value, rel=1e-12)
    assert mean_step_s(records) == pytest.approx(row.step_s.value, rel=1e-12)


def test_slow_rank_is_found_and_what_others_wait_for_it():
    spent = spent_of([make_record(step_s=0.05, transfer_s=0.0, slow_rank=1, slowdown=1.5, jitter=0.0)])

    assert spent.slowest == 1
    # Forward and backward are nine tenths of computing; the slow rank takes half as long again.
    assert spent.seconds[STRAGGLER] == pytest.approx(0.05 * 0.9 * 0.5, rel=0.01)


def test_ranks_that_are_alike_have_no_slow_one():
    assert spent_of([make_record(step_s=0.05, jitter=0.02)]).slowest is None


def test_exchange_is_that_of_the_rank_that_waited_least():
    spent = spent_of([make_record(step_s=0.05, transfer_s=0.02, slow_rank=0, slowdown=2.0, jitter=0.0)])

    assert spent.seconds[EXCHANGE] == pytest.approx(0.02, rel=0.01)


def test_waiting_for_somebody_elses_input_is_input():
    even, uneven = spent_of([uneven_input(0.0)]), spent_of([uneven_input(0.02)])

    assert uneven.seconds[INPUT] - even.seconds[INPUT] == pytest.approx(0.02, rel=0.01)
    assert uneven.seconds[EXCHANGE] == pytest.approx(even.seconds[EXCHANGE])
    assert uneven.seconds[OVERHEAD] == pytest.approx(even.seconds[OVERHEAD], abs=1e-4)


def test_waiting_for_a_core_is_no_computing():
    spent = spent_of([starved_record(0.03)])

    assert spent.seconds[CONTENTION] == pytest.approx(0.03)
    assert spent.seconds[COMPUTE] == pytest.approx(0.1 * (0.36 + 0.54 + 0.08) - 0.03)


def test_what_a_site_withholds_from_a_host_is_no_contention():
    # Half a core: of 100 ms the rank runs 50, and waits as long for its next share.
    record = starved_record(0.05, state={"site": {"core_share": 0.5}})
    halved = record.samples.set_column(
        record.samples.column_names.index("cpu_s"), "cpu_s", pa.array(np.full(record.samples.num_rows, 0.05))
    )

    assert spent_of([replace(record, samples=halved)]).seconds[CONTENTION] == pytest.approx(0.0, abs=1e-9)


def test_records_that_do_not_tell_waiting_have_none():
    assert spent_of([make_record(workers=1)]).seconds[CONTENTION] == 0.0


def test_fused_step_is_told_by_what_was_derived_of_it():
    spent = spent_of([fused_record(step_s=0.05, seconds={"forward": 0.01, "backward": 0.02, "communication": 0.01})])

    assert spent.by == DERIVED
    assert spent.seconds[COMPUTE] == pytest.approx(3 * spent.seconds[EXCHANGE])
    assert spent.seconds[EXCHANGE] >= 0.01
    assert sum(spent.seconds.values()) == pytest.approx(0.05, rel=0.05)


def test_derived_parts_never_exceed_the_step():
    spent = spent_of([fused_record(step_s=0.05, seconds={"forward": 0.05, "backward": 0.05})])

    assert spent.step_s == pytest.approx(0.05, rel=0.05)
    assert spent.seconds[OVERHEAD] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "records", [[], [failed_record()], [fused_record(seconds=None)]], ids=["none", "failed", "fused"]
)
def test_nothing_is_said_where_nothing_tells_the_parts(records):
    assert spent_of(records) is None


def test_times_of_a_dilated_site_are_given_back_their_scale():
    record = make_record(workers=1, step_s=0.1, jitter=0.0)
    cluster = replace(record.trial.cluster, options={"dilation": 4})

    assert spent_of([replace(record, trial=replace(record.trial, cluster=cluster))]).step_s == pytest.approx(0.025)


def test_input_is_the_time_until_a_batch_is_there():
    assert spent_of([make_record(workers=1, step_s=0.1, jitter=0.0)]).seconds[INPUT] == pytest.approx(0.002)
