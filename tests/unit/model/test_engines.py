"""The closed form against the event simulation, which knows none of its formulas, over random steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import NAMES, as_vector
from paceline.model.equations.ready import Buckets
from paceline.model.equations.recurrence import Stage, last_end, pipelined, sharded
from paceline.model.equations.simulate import SharedLink, Simulation, Stream, synchronous_step
from paceline.model.equations.stack import stack_of, stacks_of
from paceline.model.equations.stragglers import ALIKE, Straggling
from paceline.model.equations.terms import step_terms, steps_s, terms_of
from paceline.plan.vocabulary import PARTITIONED, PIPELINED, REPLICATED, RING, SERVER, SHARDED
from simulated import Layers, jobs_on_one_link, unequal_step

WAIT_FREE = Buckets(first_bytes=0.0, cap_bytes=0.0)
AT_THE_END = Buckets(first_bytes=np.inf, cap_bytes=np.inf)
UPDATE_S, OVERHEAD_S = 0.3, 0.1
seconds = st.floats(0.01, 2.0)
sizes = st.floats(1.0, 1e8)


@st.composite
def steps(draw) -> Layers:
    layers = draw(st.lists(st.tuples(seconds, seconds, st.just(0.0) | sizes), min_size=1, max_size=12))
    forward, backward, gradient = (np.array(column) for column in zip(*layers, strict=True))
    gradient[-1] = max(gradient[-1], 1.0)
    return Layers(
        forward_s=forward,
        backward_s=backward,
        gradient_bytes=gradient,
        latency_s=draw(st.floats(0.0, 0.1)),
        byte_s=draw(st.floats(0.0, 1e-8)),
        buckets=Buckets(first_bytes=draw(sizes), cap_bytes=draw(sizes)),
    )


def two_workers(step: Layers, latency_s: float = 0.0, byte_s: float = 0.0) -> tuple[np.ndarray, Conditions]:
    """The model's parameters and conditions of a step; a ring of two takes two turns of half a message each."""
    ready = step.ready
    messages = ready.bucketed(step.buckets)
    vector = as_vector(
        {
            "forward_s": float(step.forward_s.sum()),
            "backward_s": float(step.backward_s.sum()),
            "update_s": UPDATE_S,
            "overhead_s": OVERHEAD_S,
            "alpha_s": (step.latency_s + latency_s) / 2,
            "byte_s": step.byte_s + byte_s,
        }
    )
    asked = Conditions(workers=2, hosts=2, batch=1.0, messages=messages, fractions=ready.of_messages(messages))
    return vector, asked


@given(steps(), st.lists(st.floats(0.2, 5.0), min_size=1, max_size=6))
def test_both_engines_agree_on_workers_that_are_all_different(step, slowness):
    job = step.job(slowness)

    assert unequal_step(job) == pytest.approx(synchronous_step(job), rel=1e-9, abs=1e-12)


@given(steps())
def test_both_engines_agree_on_a_step_of_equal_workers(step):
    simulated = synchronous_step(step.job()) + UPDATE_S + OVERHEAD_S

    assert step_terms(*two_workers(step)).step_s == pytest.approx(simulated, rel=1e-9, abs=1e-12)


@given(steps())
def test_terms_are_never_negative_and_sum_up_to_the_step(step):
    terms = step_terms(*two_workers(step))
    parts = (terms.forward_s, terms.backward_s, terms.exposed_s, terms.update_s, terms.overhead_s, terms.input_s)

    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(terms.step_s)


@given(steps(), st.floats(0.0, 1.0), st.floats(0.0, 1e-7))
def test_a_step_grows_with_latency_and_with_time_per_byte(step, latency, per_byte):
    base = step_terms(*two_workers(step)).step_s

    assert step_terms(*two_workers(step, latency_s=latency)).step_s >= base - 1e-12
    assert step_terms(*two_workers(step, byte_s=per_byte)).step_s >= base - 1e-12


@given(steps())
def test_buckets_hold_all_gradients_and_are_ready_in_order(step):
    for buckets in (Buckets(), WAIT_FREE, AT_THE_END, Buckets(first_bytes=1e6, cap_bytes=1e7)):
        messages = step.ready.bucketed(buckets)

        assert sum(messages) == pytest.approx(step.gradient_bytes.sum())
        assert (np.diff(step.ready.of_messages(messages)) >= 0).all()


def test_wait_free_sends_each_gradient_and_no_overlap_sends_one_message_at_the_end():
    ready = Layers(
        forward_s=np.ones(3),
        backward_s=np.array([1.0, 2.0, 3.0]),
        gradient_bytes=np.array([10.0, 20.0, 30.0]),
        latency_s=0.0,
        byte_s=0.0,
        buckets=WAIT_FREE,
    ).ready

    free, late = ready.bucketed(WAIT_FREE), ready.bucketed(AT_THE_END)

    assert free == (30.0, 20.0, 10.0)
    assert ready.of_messages(free) == pytest.approx((0.5, 5 / 6, 1.0))
    assert (late, ready.of_messages(late)) == ((60.0,), (1.0,))


BASE = Conditions(workers=4, hosts=4, batch=8.0, messages=(4e6, 8e6, 2e6), fractions=(0.4, 0.7, 1.0))
MANY = [
    BASE.change(workers=workers, hosts=max(1, workers // 2), batch=batch, servers=servers, **fields)
    for workers in (1, 2, 6, 8)
    for batch, servers in ((4.0, 1), (16.0, 4))
    for fields in (
        {},
        {"prefetch": True, "passes": 2, "latency_s": 1e-3},
        {"bandwidth": 1e8, "exchange": SERVER},
        {"fractions": None, "every": 4},
        {"fractions": None, "messages": (1e6,)},
        {"messages": (), "fractions": ()},
        {"sharing": PARTITIONED},
        {"sharing": SHARDED},
        {"sharing": PIPELINED, "passes": 3, "fractions": None},
        {"slowness": (1.5,)},
        {"jobs": 2, "oversubscription": 2.0},
    )
]


def test_conditions_that_follow_the_same_formulas_are_stacked_once_each():
    stacks = stacks_of(MANY)

    assert sorted(place for places, _ in stacks for place in places) == list(range(len(MANY)))
    assert all([MANY[place] for place in places] == list(stack.rows) for places, stack in stacks)
    assert len(stacks) < len(MANY) / 2
    assert stack_of([BASE]).exchange == RING
    assert stack_of([BASE]).sharing == REPLICATED


@pytest.mark.parametrize("straggling", [ALIKE, Straggling(spread=0.1, persistence=0.0, slowest=1.3)])
def test_many_conditions_and_parameters_at_once_are_as_each_by_itself(straggling):
    typical = as_vector(
        {
            **dict.fromkeys(NAMES, 1e-3),
            "alpha_s": 1e-4,
            "byte_s": 1e-9,
            "wire": 1.1,
            "start": 0.5,
            "serving": 1e-9,
            "contention": 0.2,
        }
    )
    vectors = typical * np.random.default_rng(0).uniform(0.5, 1.5, (5, len(NAMES)))

    for places, stack in stacks_of(MANY):
        together = terms_of(vectors, stack, straggling).step_s
        alone = [[step_terms(vector, MANY[place], straggling).step_s for vector in vectors] for place in places]

        assert together == pytest.approx(np.array(alone), rel=1e-14)
        assert together[0] == pytest.approx(steps_s(vectors, stack.rows[0], straggling), rel=1e-14)


def test_sharded_weights_are_gathered_one_stage_ahead():
    free, paid = ([Stage(forward_s=1.0, backward_s=2.0, gather_s=cost, scatter_s=cost)] * 2 for cost in (0.0, 0.5))

    assert sharded(free) == pytest.approx(6.0)
    # The first gather and the last scatter show; what lies between is hidden.
    assert sharded(paid) == pytest.approx(7.0)


def test_a_pipeline_fills_and_drains():
    assert pipelined(12.0, 0.0, stages=4, micro_batches=8) == pytest.approx((8 + 3) * 1.0 + (8 + 3) * 2.0)


def test_jobs_share_a_link_fairly():
    alone = jobs_on_one_link([1.0], [1.0], steps=10)
    crowded = jobs_on_one_link([0.0] * 4, [1.0] * 4, steps=10)

    assert alone == pytest.approx([2.0])
    assert crowded == pytest.approx([4.0] * 4)


def test_a_stream_takes_turns_and_a_link_shares():
    on_a_stream, stream = Simulation(), Stream()
    on_a_stream.task(1.0, on=stream)
    on_a_stream.task(2.0, on=stream)
    on_a_link, link = Simulation(), SharedLink()
    on_a_link.task(1.0, on=link)
    on_a_link.task(2.0, on=link)

    assert on_a_stream.run() == pytest.approx(3.0)
    assert on_a_link.run() == pytest.approx(3.0)


def test_the_last_end_of_nothing_is_the_beginning():
    assert last_end(np.array([]), np.array([])) == 0.0
