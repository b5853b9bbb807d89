"""Named pieces of the model against an event simulation that does not know them, over random configurations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.equations.feeding import arrival
from paceline.model.equations.recurrence import Stage, pipelined, sharded
from paceline.model.equations.servers import Service, asynchronous_step
from paceline.model.equations.simulate import Simulation, Stream
from simulated import asynchronous_steps, jobs_on_one_link

SECONDS = st.floats(1e-3, 1.0)


@given(compute=SECONDS, carry=SECONDS, jobs=st.integers(1, 6))
def test_equal_jobs_on_one_link_are_as_the_simulation_has_them(compute, carry, jobs):
    simulated = jobs_on_one_link([compute] * jobs, [carry] * jobs, steps=5)

    # A fair link gives each an equal share, so all carry for as long as they would one after the other.
    assert simulated == pytest.approx([compute + jobs * carry] * jobs, rel=1e-9)


@given(compute=SECONDS, latency=st.floats(0, 0.01), size=st.floats(1e3, 1e8), workers=st.integers(1, 8))
def test_asynchronous_workers_are_as_the_simulation_has_them(compute, latency, size, workers):
    service = Service(size=size, latency_s=latency, byte_s=1e-9)
    simulated = asynchronous_steps(compute, latency, service.busy_s, workers=workers, steps=40 * workers)

    assert asynchronous_step(compute, service, workers=workers) == pytest.approx(simulated, rel=1e-9)


def test_more_servers_serve_more_workers():
    single, four = (Service(size=1e8, latency_s=1e-4, byte_s=1e-9, servers=servers) for servers in (1, 4))

    assert asynchronous_step(0.1, single, workers=8) == pytest.approx(8 * 0.2)
    assert asynchronous_step(0.1, four, workers=8) == pytest.approx(8 * 0.05)


@pytest.mark.parametrize(("loaders", "expected"), [(0, (0.3, False)), (1, (0.3, True)), (2, (0.15, True))])
def test_loaders_share_the_work_of_preparing_batches(loaders, expected):
    assert arrival(0.3, loaders=loaders) == expected


def simulated_pipeline(forward_s, backward_s, hand_over_s, *, stages, micro_batches):
    """Every stage is a stream; the backward pass begins when the last micro-batch is through."""
    simulation = Simulation()
    streams = [Stream() for _ in range(stages)]

    def flow(stage_s, order, start):
        ends = []
        for _ in range(micro_batches):
            before = start
            for place, station in enumerate(order):
                moved = [simulation.task(hand_over_s, before)] if place else before
                before = [simulation.task(stage_s, moved, streams[station])]
            ends += before
        return ends

    order = list(range(stages))
    forward = flow(forward_s / stages, order, [])
    flow(backward_s / stages, order[::-1], forward)
    return simulation.run()


@given(
    forward=SECONDS,
    backward=SECONDS,
    hand_over=st.floats(0, 0.1),
    stages=st.integers(1, 6),
    micro_batches=st.integers(1, 6),
)
def test_pipeline_is_as_the_simulation_has_it(forward, backward, hand_over, stages, micro_batches):
    expected = simulated_pipeline(forward, backward, hand_over, stages=stages, micro_batches=micro_batches)

    closed = pipelined(forward + backward, hand_over, stages=stages, micro_batches=micro_batches)
    assert closed == pytest.approx(expected, rel=1e-9)


def simulated_shards(stages):
    """One stream carries, first come, first served; a gather may be one stage ahead of the computing."""
    simulation, carry, compute = Simulation(), Stream(), Stream()
    forward = []
    for index, stage in enumerate(stages):
        gathered = simulation.task(stage.gather_s, forward[index - 2 : index - 1] if index >= 2 else [], carry)
        forward.append(simulation.task(stage.forward_s, [gathered, *forward[-1:]], compute))
    backward = []
    for turn, index in enumerate(range(len(stages) - 1, -1, -1)):
        needed = [*forward[-1:], *backward[-1:]]
        if turn:
            asked = backward[turn - 2 : turn - 1] if turn >= 2 else forward[-1:]
            needed.append(simulation.task(stages[index].gather_s, asked, carry))
        backward.append(simulation.task(stages[index].backward_s, needed, compute))
        simulation.task(stages[index].scatter_s, backward[-1:], carry)
    return simulation.run()


@given(
    stages=st.lists(
        st.builds(Stage, forward_s=SECONDS, backward_s=SECONDS, gather_s=SECONDS, scatter_s=SECONDS),
        min_size=1,
        max_size=6,
    )
)
def test_sharded_step_is_as_the_simulation_has_it(stages):
    assert sharded(stages) == pytest.approx(simulated_shards(stages), rel=1e-9)
