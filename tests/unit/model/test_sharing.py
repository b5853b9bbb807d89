"""Each way in which workers share a step, against the piece of the model that describes it and against plain sums."""

from __future__ import annotations

from typing import get_args

import pytest

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import neighbours
from paceline.model.equations.parameters import INDEX, as_vector
from paceline.model.equations.stack import stack_of
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.strategies import WAYS
from paceline.model.equations.terms import step_terms
from paceline.plan.vocabulary import ASYNCHRONOUS, PARTITIONED, PIPELINED, REPLICATED, RING, SERVER, SHARDED, Sharing

VECTOR = as_vector(
    {
        "forward_per_sample_s": 1e-3,
        "backward_per_sample_s": 2e-3,
        "update_s": 3e-3,
        "overhead_s": 1e-3,
        "alpha_s": 1e-4,
        "byte_s": 1e-9,
        "wire": 1.0,
        "start": 1.0,
        "contention": 0.0,
    }
)
ASKED = Conditions(workers=4, hosts=4, batch=10.0, messages=(4e6, 2e6), fractions=(0.5, 1.0))
COMPUTING = 10 * 3e-3 + 4e-3
ALL_REDUCE = 2 * 6 * 1e-4 + 2 * 3 / 4 * 6e6 * 1e-9
"""Both messages round the ring."""


def test_every_way_has_its_function() -> None:
    assert set(WAYS) == set(get_args(Sharing))


@pytest.mark.parametrize("sharing", get_args(Sharing))
def test_a_lone_worker_exchanges_nothing(sharing: str) -> None:
    assert step_terms(VECTOR, ASKED.change(workers=1, hosts=1, sharing=sharing)).step_s == pytest.approx(COMPUTING)


@pytest.mark.parametrize("sharing", get_args(Sharing))
@pytest.mark.parametrize("name", ["alpha_s", "byte_s"])
def test_no_way_is_faster_over_a_worse_link(sharing: str, name: str) -> None:
    steps = []
    for factor in (0.0, 1.0, 10.0, 100.0):
        worse = VECTOR.copy()
        worse[INDEX[name]] *= factor
        steps.append(step_terms(worse, ASKED.change(sharing=sharing)).step_s)

    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def test_shares_of_the_weights_are_gathered_after_the_update() -> None:
    averaged, partitioned = (step_terms(VECTOR, ASKED.change(sharing=sharing)) for sharing in (REPLICATED, PARTITIONED))

    assert partitioned.step_s - averaged.step_s == pytest.approx(3 * 1e-4 + 3 / 4 * 6e6 * 1e-9)
    assert partitioned.latency_s + partitioned.bandwidth_s == pytest.approx(partitioned.exposed_s)


def test_sharded_weights_travel_half_as_much_again() -> None:
    """Gathered, gathered again but for the last stage, and scattered: three halves of an all-reduce, less one half."""
    terms = step_terms(VECTOR, ASKED.change(sharing=SHARDED))

    kept = (6 * 1e-4 + 2 * 3 / 4 * 4e6 * 1e-9) / 2
    assert terms.exchange_s == pytest.approx(1.5 * ALL_REDUCE - kept)
    assert 0 < terms.exposed_s < terms.exchange_s


def test_sharded_weights_that_cost_nothing_cost_nothing() -> None:
    free = VECTOR.copy()
    free[[INDEX["alpha_s"], INDEX["byte_s"]]] = 0.0

    assert step_terms(free, ASKED.change(sharing=SHARDED)).step_s == pytest.approx(COMPUTING)


def test_a_pipeline_has_a_bubble_that_more_micro_batches_make_smaller() -> None:
    """GPipe: with M micro-batches on P stages, (P − 1)/M of the computing is waited for."""
    free = VECTOR.copy()
    free[[INDEX["alpha_s"], INDEX["byte_s"]]] = 0.0
    for passes in (1, 2, 8):
        asked = ASKED.change(sharing=PIPELINED, passes=passes, batch=40 / passes, messages=(1e5,), fractions=None)
        terms = step_terms(free, asked)
        computing = 40 * 3e-3
        assert terms.forward_s + terms.backward_s == pytest.approx(computing)
        assert terms.waiting_s == pytest.approx(3 / (4 * passes) * computing)


def test_what_stages_hand_over_shows_once_a_stage_and_way() -> None:
    asked = ASKED.change(sharing=PIPELINED, passes=2, batch=5.0, messages=(1e5,), fractions=None)

    assert step_terms(VECTOR, asked).exposed_s == pytest.approx(2 * 3 * (1e-4 + 1e5 * 5 * 1e-9))


def test_who_goes_alone_waits_for_servers_and_not_for_the_slowest() -> None:
    asked = ASKED.change(sharing=ASYNCHRONOUS, exchange=SERVER, servers=4)
    uneven = Straggling(spread=0.3, persistence=0.0, slowest=1.0)
    alone = COMPUTING + 2 * 2e-4 + 2 * 6e6 / 4 * 1e-9

    assert step_terms(VECTOR, asked, uneven).step_s == pytest.approx(alone)
    assert step_terms(VECTOR, asked.change(sharing=REPLICATED), uneven).waiting_s > 0


@pytest.mark.parametrize(("servers", "part"), [(1, 1.0), (2, 1.0), (4, 0.75)])
def test_what_goes_to_the_server_of_ones_own_host_does_not_leave_it(servers: int, part: float) -> None:
    asked = ASKED.change(exchange=SERVER, servers=servers, workers=4, hosts=4, bandwidth=1e7)
    vector = as_vector({"wire": 1.0})
    by_server, by_ring = (
        neighbours(vector[None, :], stack_of([conditions]))[1] for conditions in (asked, asked.change(exchange=RING))
    )

    assert by_server == pytest.approx(part * by_ring)


def test_servers_that_are_never_idle_set_the_pace() -> None:
    asked = ASKED.change(sharing=ASYNCHRONOUS, exchange=SERVER, servers=1, workers=64, hosts=64)
    terms = step_terms(VECTOR, asked)

    assert terms.step_s == pytest.approx(64 * 2 * 6e6 * 1e-9)
    assert terms.latent == pytest.approx(2 * 2e-4 / terms.exposed_s)
