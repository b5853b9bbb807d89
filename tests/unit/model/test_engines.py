"""The closed form against the event simulation, which knows none of its formulas, over random steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.equations.recurrence import (
    Sweep,
    last_end,
    pipelined,
    sharded,
    sweep,
    sweep_numpy,
    unequal,
)
from paceline.model.equations.simulate import SharedLink, Simulation, Stream, synchronous_step
from paceline.model.equations.step import Buckets, Messages, Profile, Stage, bucketed
from simulated import jobs_on_one_link, overlapped

WAIT_FREE = Buckets(first_bytes=0.0, cap_bytes=0.0)
AT_THE_END = Buckets(first_bytes=np.inf, cap_bytes=np.inf)
seconds = st.floats(0.0, 2.0)
sizes = st.floats(0.0, 1e8)


@st.composite
def profiles(draw) -> Profile:
    layers = draw(st.lists(st.tuples(seconds, seconds, sizes), min_size=1, max_size=12))
    forward, backward, gradient = (np.array(column) for column in zip(*layers, strict=True))
    return Profile(
        forward_s=forward,
        backward_s=backward,
        gradient_bytes=gradient,
        input_s=draw(seconds),
        copy_s=draw(seconds),
        update_s=draw(seconds),
        overhead_s=draw(seconds),
        prefetch=draw(st.booleans()),
    )


@st.composite
def steps(draw) -> tuple[Profile, Messages, np.ndarray]:
    profile = draw(profiles())
    messages = bucketed(profile, Buckets(first_bytes=draw(sizes), cap_bytes=draw(sizes)))
    costs = draw(st.floats(0.0, 0.1)) + draw(st.floats(0.0, 1e-8)) * messages.sizes
    return profile, messages, costs


@given(steps(), st.lists(st.floats(0.2, 5.0), min_size=1, max_size=6))
def test_both_engines_agree_on_workers_that_are_all_different(step, slowness):
    profile, messages, costs = step

    closed = unequal(profile, messages, costs, np.array(slowness))

    assert closed == pytest.approx(synchronous_step(profile, messages, costs, slowness), rel=1e-9, abs=1e-12)


@given(steps())
def test_both_engines_agree_on_a_step_of_equal_workers(step):
    profile, messages, costs = step

    assert overlapped(profile, messages, costs).step_s == pytest.approx(
        synchronous_step(profile, messages, costs), rel=1e-9, abs=1e-12
    )


@given(steps())
def test_terms_are_never_negative_and_sum_up_to_the_step(step):
    terms = overlapped(*step)
    parts = (terms.forward_s, terms.backward_s, terms.exposed_s, terms.update_s, terms.overhead_s, terms.input_s)

    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(terms.step_s)


@given(steps(), st.floats(0.0, 1.0), st.floats(0.0, 1e-7))
def test_a_step_grows_with_latency_and_with_time_per_byte(step, latency, per_byte):
    profile, messages, costs = step
    base = overlapped(profile, messages, costs).step_s

    assert overlapped(profile, messages, costs + latency).step_s >= base - 1e-12
    assert overlapped(profile, messages, costs + per_byte * messages.sizes).step_s >= base - 1e-12


@given(profiles())
def test_buckets_hold_all_gradients_and_are_ready_in_order(profile):
    for buckets in (Buckets(), WAIT_FREE, AT_THE_END, Buckets(first_bytes=1e6, cap_bytes=1e7)):
        messages = bucketed(profile, buckets)

        assert messages.sizes.sum() == pytest.approx(profile.gradient_bytes.sum())
        assert (np.diff(messages.ready_s) >= 0).all()


def test_wait_free_sends_each_gradient_and_no_overlap_sends_one_message_at_the_end():
    profile = Profile(
        forward_s=np.ones(3), backward_s=np.array([1.0, 2.0, 3.0]), gradient_bytes=np.array([10.0, 20.0, 30.0])
    )

    free, late = bucketed(profile, WAIT_FREE), bucketed(profile, AT_THE_END)

    assert free.ready_s.tolist() == [3.0, 5.0, 6.0]
    assert free.sizes.tolist() == [30.0, 20.0, 10.0]
    assert (late.ready_s.tolist(), late.sizes.tolist()) == ([6.0], [60.0])


@given(steps(), st.integers(1, 50))
def test_compiled_and_plain_sweeps_are_the_same(step, count):
    profile, messages, _ = step
    generator = np.random.default_rng(count)
    asked = Sweep(
        latency_s=generator.uniform(0, 1e-2, count),
        per_byte_s=generator.uniform(0, 1e-8, count),
        compute=generator.uniform(0.1, 3, count),
    )

    np.testing.assert_allclose(sweep(profile, messages, asked), sweep_numpy(profile, messages, asked), rtol=1e-12)


@given(steps(), st.floats(0.1, 3.0))
def test_a_sweep_is_the_recurrence_for_each_configuration(step, factor):
    profile, messages, _ = step
    asked = Sweep(latency_s=np.array([1e-3]), per_byte_s=np.array([1e-9]), compute=np.array([factor]))
    slower = profile.scaled(factor)
    moved = Messages(ready_s=messages.ready_s * factor, sizes=messages.sizes)

    terms = overlapped(slower, moved, 1e-3 + 1e-9 * messages.sizes)

    assert sweep_numpy(profile, messages, asked)[0] == pytest.approx(terms.step_s)


def test_sharded_weights_are_gathered_one_stage_ahead():
    profile = Profile(
        forward_s=np.array([1.0, 1.0]), backward_s=np.array([2.0, 2.0]), gradient_bytes=np.array([4.0, 4.0])
    )
    stages = [Stage(forward_s=1.0, backward_s=2.0, bytes=4.0)] * 2

    free = sharded(stages, lambda b: 0 * b, lambda b: 0 * b, profile)
    terms = sharded(stages, lambda b: 0 * b + 0.5, lambda b: 0 * b + 0.5, profile)

    assert free.step_s == pytest.approx(6.0)
    # The first gather and the last scatter show; what lies between is hidden.
    assert terms.step_s == pytest.approx(7.0)


def test_a_pipeline_fills_and_drains():
    stages = [Stage(forward_s=1.0, backward_s=2.0, bytes=0.0)] * 4

    assert pipelined(stages, 0.0, micro_batches=8) == pytest.approx((8 + 3) * 1.0 + (8 + 3) * 2.0)


def test_jobs_share_a_link_fairly():
    alone = jobs_on_one_link([1.0], [1.0], steps=10)
    crowded = jobs_on_one_link([0.0] * 4, [1.0] * 4, steps=10)

    assert alone == pytest.approx([2.0])
    assert crowded == pytest.approx([4.0] * 4)


def test_a_stream_takes_turns_and_a_link_shares():
    one = Simulation()
    stream = Stream()
    one.task(1.0, on=stream)
    one.task(2.0, on=stream)
    two = Simulation()
    link = SharedLink()
    two.task(1.0, on=link)
    two.task(2.0, on=link)

    assert one.run() == pytest.approx(3.0)
    assert two.run() == pytest.approx(3.0)


def test_the_last_end_of_nothing_is_the_beginning():
    assert last_end(np.array([]), np.array([])) == 0.0
