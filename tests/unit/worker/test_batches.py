"""Which samples a rank reads: the same in every framework."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline_worker.batches import batch_indices, cycle_steps, first_sample, micro_batches

SMALL = st.integers(min_value=1, max_value=12)


@given(step=st.integers(0, 50), world=SMALL, batch=SMALL, samples=st.integers(1, 40))
def test_ranks_together_read_what_one_process_with_the_whole_batch_reads(step, world, batch, samples):
    together = [place for rank in range(world) for place in batch_indices(step, rank, world, batch, samples)]

    assert together == batch_indices(step, 0, 1, world * batch, samples)


@given(step=st.integers(0, 50), world=SMALL, batch=SMALL, samples=st.integers(1, 40))
def test_batches_come_again_after_a_cycle(step, world, batch, samples):
    again = step + cycle_steps(world, batch, samples)

    assert first_sample(step, 0, world, batch, samples) == first_sample(again, 0, world, batch, samples)


def test_samples_are_dealt_in_file_order_and_wrap():
    assert batch_indices(0, 1, 2, 3, 10) == [3, 4, 5]
    assert batch_indices(1, 1, 2, 3, 10) == [9, 0, 1]


def test_a_proofs_batch_is_cut_into_nearly_as_many_pieces_as_the_measured_one():
    assert micro_batches(8, 3) == 2
    assert micro_batches(8, 7) == 4
    assert micro_batches(4, 32) == 4
    assert micro_batches(8, 1) == 1


@given(batch=SMALL, pieces=SMALL)
def test_a_batch_that_can_be_cut_as_asked_is_cut_so(batch, pieces):
    assert micro_batches(batch * pieces, pieces) == pieces
