"""Costs of collectives: limits, order, and what an independent count of messages says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.equations.collectives import (
    ALL_REDUCE,
    Hosts,
    Segments,
    Wire,
    all_gather,
    broadcast,
    hierarchical,
    parameter_server,
    reduce_scatter,
    ring,
)

WIRE = Wire(alpha_s=1e-5, beta_s=1e-9, gamma_s=1e-10)


@pytest.mark.parametrize("name", ALL_REDUCE)
def test_one_rank_has_nothing_to_exchange(name):
    assert float(ALL_REDUCE[name](1e6, 1, WIRE)) == 0


@pytest.mark.parametrize("name", ALL_REDUCE)
@given(size=st.floats(0, 1e9), ranks=st.integers(2, 4096), more=st.floats(1, 10))
def test_costs_grow_with_size_latency_and_time_per_byte(name, size, ranks, more):
    cost = ALL_REDUCE[name]
    base = float(cost(size, ranks, WIRE))

    assert base > 0
    assert float(cost(size * more, ranks, WIRE)) >= base
    assert float(cost(size, ranks, Wire(alpha_s=1e-5 * more, beta_s=1e-9, gamma_s=1e-10))) >= base
    assert float(cost(size, ranks, Wire(alpha_s=1e-5, beta_s=1e-9 * more, gamma_s=1e-10))) >= base


def test_a_ring_moves_a_part_in_every_turn():
    turns = 2 * (4 - 1)

    assert ring(4e6, 4, Wire(alpha_s=1e-5, beta_s=1e-9)) == pytest.approx(turns * (1e-5 + 1e6 * 1e-9))


def test_a_ring_is_a_reduce_scatter_and_an_all_gather():
    assert ring(1e6, 5, WIRE) == pytest.approx(reduce_scatter(1e6, 5, WIRE) + all_gather(1e6, 5, WIRE))


@given(size=st.floats(0, 1e9), ranks=st.integers(1, 64), per_host=st.integers(1, 16))
def test_a_hierarchy_never_takes_less_than_no_time(size, ranks, per_host):
    hosts = Hosts(per_host=per_host, inside=WIRE, between=Wire(alpha_s=5e-5, beta_s=8e-9))

    assert float(hierarchical(size, ranks, hosts)) >= 0


def test_a_hierarchy_of_one_rank_a_host_is_a_ring_between_hosts():
    between = Wire(alpha_s=5e-5, beta_s=8e-9)

    assert hierarchical(1e7, 8, Hosts(per_host=1, inside=WIRE, between=between)) == pytest.approx(ring(1e7, 8, between))


def test_servers_carry_what_all_workers_send():
    one, as_many = (parameter_server(1e6, 4, WIRE, servers=count) for count in (1, 4))

    assert float(one) == pytest.approx(2e-5 + 2 * 4 * 1e6 * 1e-9)
    assert float(as_many) == pytest.approx(2e-5 + 2 * 1e6 * 1e-9)


def test_a_broadcast_reaches_all_in_rounds():
    assert float(broadcast(1e6, 5, WIRE)) == pytest.approx(3 * (1e-5 + 1e-3))


def test_segments_pass_through_their_knots_and_go_on_beyond():
    line = Segments(np.array([1e3, 1e4, 1e6]), np.array([1e-4, 2e-4, 2e-3]))

    assert line(1e4) == pytest.approx(2e-4)
    assert line(np.array([1e3, 5.5e3])) == pytest.approx([1e-4, 1.5e-4])
    assert line(2e6) == pytest.approx(2e-3 + 1e6 * (2e-3 - 2e-4) / (1e6 - 1e4))
    assert line(0.0) >= 0
