"""Costs of collectives: limits, order, and what an independent count of messages says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.equations.collectives import Wire, parameter_server, ring
from paceline.model.equations.exchange import ALGORITHMS

WIRE = Wire(alpha_s=1e-5, beta_s=1e-9, gamma_s=1e-10)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_rank_has_nothing_to_exchange(name):
    assert float(ALGORITHMS[name](1e6, 1, WIRE)) == 0


@pytest.mark.parametrize("name", ALGORITHMS)
@given(size=st.floats(0, 1e9), ranks=st.integers(2, 4096), more=st.floats(1, 10))
def test_costs_grow_with_size_latency_and_time_per_byte(name, size, ranks, more):
    cost = ALGORITHMS[name]
    base = float(cost(size, ranks, WIRE))

    assert base > 0
    assert float(cost(size * more, ranks, WIRE)) >= base
    assert float(cost(size, ranks, Wire(alpha_s=1e-5 * more, beta_s=1e-9, gamma_s=1e-10))) >= base
    assert float(cost(size, ranks, Wire(alpha_s=1e-5, beta_s=1e-9 * more, gamma_s=1e-10))) >= base


def test_a_ring_moves_a_part_in_every_turn():
    turns = 2 * (4 - 1)

    assert ring(4e6, 4, Wire(alpha_s=1e-5, beta_s=1e-9)) == pytest.approx(turns * (1e-5 + 1e6 * 1e-9))


def test_servers_carry_what_all_workers_send():
    single, as_many = (parameter_server(1e6, 4, WIRE, servers=count) for count in (1, 4))

    assert float(single) == pytest.approx(2e-5 + 2 * 4 * 1e6 * 1e-9)
    assert float(as_many) == pytest.approx(2e-5 + 2 * 1e6 * 1e-9)
