"""Hosts that differ and links that are shared, by event simulation: against the closed forms where there are some."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import message_costs
from paceline.model.equations.parameters import as_vector
from paceline.model.equations.simulate import Job
from paceline.model.equations.stack import stack_of
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.surroundings import host_slowness, slowest_of_classes
from paceline.model.equations.terms import step_terms
from simulated import unequal_step

FORWARD_S, BACKWARD_S, UPDATE_S, OVERHEAD_S = 10e-3, 20e-3, 3e-3, 1e-3
"""Of a batch of 10."""
ALIKE = Straggling(spread=0.0, persistence=0.0, slowest=1.0)


def vector(**changes: float) -> Floats:
    return as_vector(
        {
            "forward_per_sample_s": FORWARD_S / 10,
            "backward_per_sample_s": BACKWARD_S / 10,
            "update_s": UPDATE_S,
            "overhead_s": OVERHEAD_S,
            "alpha_s": 1e-4,
            "byte_s": 1e-9,
            "wire": 1.0,
            "start": 0.3,
            "contention": 0.2,
            **changes,
        }
    )


def costs_of(values: Floats, asked: Conditions) -> tuple[Floats, Floats]:
    """Latency and bandwidth seconds of each message."""
    latencies, carried = message_costs(values[None, :], stack_of([asked]))
    return latencies[0, 0], carried[0, 0]


ASKED = Conditions(workers=8, hosts=8, batch=10.0, messages=(4e6, 8e6, 2e6), fractions=(0.4, 0.7, 1.0))


@given(
    workers_per_host=st.integers(1, 4),
    hosts=st.integers(1, 8),
    fractions=st.sampled_from([None, (0.1, 0.5, 1.0), (1.0, 1.0, 1.0)]),
    passes=st.integers(1, 4),
    every=st.integers(1, 3),
    exchange=st.sampled_from(["ring", "tree", "halving-doubling", "server"]),
    bandwidth=st.sampled_from([None, 1e8, 1e10]),
    prefetch=st.booleans(),
    straggling=st.sampled_from(
        [
            ALIKE,
            Straggling(spread=0.1, persistence=0.0, slowest=1.0),
            Straggling(spread=0.1, persistence=0.0, slowest=1.4),
        ]
    ),
)
def test_equal_hosts_with_links_of_their_own_are_as_the_closed_form_has_them(
    workers_per_host, hosts, straggling, **changes
):
    asked = ASKED.change(workers=workers_per_host * hosts, hosts=hosts, **changes)
    given_slowness = asked.change(slowness=(1.0, 1.0), repeating=True)
    fed = vector(input_per_sample_s=1e-3)

    assert given_slowness.is_simulated
    closed, simulated = (step_terms(fed, conditions, straggling) for conditions in (asked, given_slowness))
    assert simulated.step_s == pytest.approx(closed.step_s, rel=1e-9)
    assert simulated.exposed_s == pytest.approx(closed.exposed_s, rel=1e-9, abs=1e-12)
    assert simulated.exchange_s == pytest.approx(closed.exchange_s, rel=1e-9)


@given(slowness=st.lists(st.floats(0.5, 4.0), min_size=2, max_size=8), byte_s=st.floats(1e-10, 1e-8))
def test_unequal_hosts_are_as_the_closed_form_of_unequal_workers_has_them(slowness, byte_s):
    values = vector(byte_s=byte_s, contention=0.0)
    asked = ASKED.change(workers=len(slowness), hosts=len(slowness))
    latencies, carried = costs_of(values, asked)
    closed = unequal_step(
        Job(
            before_s=FORWARD_S,
            backward_s=BACKWARD_S,
            ready_s=np.array([0.4, 0.7, 1.0]) * BACKWARD_S,
            latencies_s=latencies,
            carried_s=carried,
            slowness=tuple(slowness),
        )
    )

    terms = step_terms(values, asked.change(slowness=tuple(slowness)))
    assert terms.step_s == pytest.approx(closed + (UPDATE_S + OVERHEAD_S) * max(slowness), rel=1e-9)
    assert terms.waiting_s == pytest.approx((max(slowness) - 1) * (FORWARD_S + BACKWARD_S), rel=1e-9)


@given(factor=st.floats(1.01, 20.0), bandwidth=st.sampled_from([None, 1e8, 1e9]))
def test_oversubscribed_network_is_one_that_is_slower_by_the_factor(factor, bandwidth):
    asked = ASKED.change(bandwidth=bandwidth)
    slower = vector(byte_s=1e-9 * factor, wire=factor, contention=0.0)

    simulated = step_terms(vector(contention=0.0), asked.change(oversubscription=factor))

    assert simulated.step_s == pytest.approx(step_terms(slower, asked).step_s, rel=1e-9)


@given(jobs=st.integers(1, 6), size=st.floats(1e5, 1e8))
def test_equal_jobs_that_do_not_overlap_carry_one_after_the_other(jobs, size):
    asked = ASKED.change(messages=(size,), fractions=(1.0,), jobs=jobs)
    latencies, carried = costs_of(vector(), asked)

    step = step_terms(vector(), asked).step_s

    computing = FORWARD_S + BACKWARD_S + UPDATE_S + OVERHEAD_S
    assert step == pytest.approx(computing + float(latencies[0]) + jobs * float(carried[0]), rel=1e-9)


def test_jobs_and_an_oversubscribed_network_multiply_where_nothing_overlaps():
    asked = ASKED.change(messages=(1e7,), fractions=(1.0,), jobs=2, oversubscription=4.0)
    latencies, carried = costs_of(vector(), asked)

    assert step_terms(vector(), asked).exposed_s == pytest.approx(float(latencies[0]) + 8 * float(carried[0]))


def test_workers_of_one_host_use_no_link_that_others_use():
    asked = ASKED.change(workers=4, hosts=1)

    shared = step_terms(vector(), asked.change(oversubscription=8.0, jobs=4))

    assert shared.step_s == pytest.approx(step_terms(vector(), asked).step_s)


@pytest.mark.parametrize("change", [{"slowness": (1.0,)}, {"oversubscription": 1.0}, {"jobs": 1}])
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_nothing_is_faster_for_being_slower(change, factor):
    (name, value), *_ = change.items()
    worse = {name: tuple(slowness * factor for slowness in value) if isinstance(value, tuple) else value * factor}

    assert step_terms(vector(), ASKED.change(**worse)).step_s >= step_terms(vector(), ASKED).step_s - 1e-12


@pytest.mark.parametrize(
    ("slowness", "repeating", "expected"),
    [
        ((), False, [1.0, 1.0, 1.0]),
        ((2.0,), False, [2.0, 1.0, 1.0]),
        ((1.0, 1.5), True, [1.0, 1.5, 1.0]),
        ((1.0, 2.0, 3.0, 4.0), True, [1.0, 2.0, 3.0]),
    ],
)
def test_slowness_is_given_to_hosts_in_order(slowness, repeating, expected):
    asked = ASKED.change(workers=3, hosts=3, slowness=slowness, repeating=repeating)

    assert host_slowness(asked) == expected


def test_class_of_equally_slow_hosts_is_as_slow_as_its_slowest_worker():
    asked = ASKED.change(workers=6, hosts=3, slowness=(2.0,))
    calm, restless = ALIKE, Straggling(spread=0.1, persistence=0.0, slowest=1.0)

    assert slowest_of_classes(asked, calm) == [2.0, 1.0]
    slow, usual = slowest_of_classes(asked, restless)
    assert 2.0 < slow < 2.0 * usual


def test_lone_worker_on_a_slow_host_computes_slower():
    asked = ASKED.change(workers=1, hosts=1, slowness=(2.0,))

    terms = step_terms(vector(), asked)

    assert terms.step_s == pytest.approx(2 * (FORWARD_S + BACKWARD_S + UPDATE_S + OVERHEAD_S))
    assert step_terms(vector(), asked.alone()).step_s == pytest.approx(terms.step_s / 2)
