"""A rank of TensorFlow as it runs: strategies, phases, servers, how it ends, and whether it trains what PyTorch does."""

from __future__ import annotations

import os
import signal
import socket
import time

import numpy as np
import pytest

from paceline.workloads import load_workload
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Input, Sgd
from torch_rig import only, read_events

WAIT_S = 120
"""For what takes seconds on a machine that is not busy."""


def facts_of(events):
    return {name: value for event in events for name, value in event.get("facts", {}).items()}


def losses_of(events):
    return [loss for event in events if event["event"] == "steps" for loss in event["loss"]]


@pytest.fixture(scope="module")
def resnet():
    """Batch norms are each worker's own; weights are not."""
    return load_workload("resnet20", {"image_size": 8})


@pytest.fixture(scope="module")
def two_processes(rig, resnet, tmp_path_factory):
    return rig.run(rig.job(resnet, world=2, batch=4), tmp_path_factory.mktemp("processes"))


def test_two_processes_keep_weights_equal_and_the_rest_their_own(two_processes):
    first, second = two_processes

    assert facts_of(first)["wrapped"] == "MultiWorkerMirroredStrategy"
    assert facts_of(first)["weights_sha256"] == facts_of(second)["weights_sha256"]
    assert losses_of(first) != losses_of(second)
    assert facts_of(first)["phases_derived"]["by"] == "differences"
    assert set(facts_of(first)["phases_derived"]["seconds"]) == {"forward", "backward", "update", "communication"}


def test_two_devices_of_one_process_train_what_two_processes_train_and_giving_evidence_changes_nothing(
    rig, resnet, two_processes, tmp_path
):
    (events,) = rig.run(rig.job(resnet, devices=2, strategy="mirrored", batch=4, evidence=True), tmp_path)

    assert facts_of(events)["wrapped"] == "MirroredStrategy"
    # Of one worker, whichever process it is in; the exchange adds a little.
    flops = facts_of(two_processes[0])["framework_flops"]
    assert facts_of(events)["framework_flops"] == pytest.approx(flops, rel=0.1)
    both = np.mean([losses_of(one) for one in two_processes], axis=0)
    np.testing.assert_allclose(losses_of(events), both, rtol=1e-5)
    given = {event["what"]: set(event["tensors"]) for event in events if event["event"] == "evidence"}
    assert set(given) == {"gradients", "weights", "statistics"}
    assert given["gradients"] == given["weights"]


def test_parts_of_the_step_come_from_operators_and_fill_it(rig, tmp_path):
    (events,) = rig.run(rig.job(load_workload("lenet5"), batch=4), tmp_path)
    assert 0 < facts_of(events)["compile_s"] < only(events, "ready")["setup_s"]
    derived = facts_of(events)["phases_derived"]

    assert derived["by"] == "operators"
    assert set(derived["seconds"]) == {"forward", "backward", "update", "overhead"}
    assert all(seconds > 0 for seconds in derived["seconds"].values())
    assert sum(derived["seconds"].values()) == pytest.approx(derived["step_s"])


def test_compiled_by_xla_or_eager_it_trains_the_same(rig, tmp_path):
    graph = load_workload("mlp", {"hidden": [16]})
    (plain,) = rig.run(rig.job(graph, batch=4, derive_phases=False), tmp_path / "plain")
    for knob in ("jit_compile", "eager"):
        (other,) = rig.run(rig.job(graph, batch=4, **{knob: True}), tmp_path / knob)

        np.testing.assert_allclose(losses_of(other), losses_of(plain), rtol=1e-5)
        assert facts_of(other)["phases_derived"]["by"] == "differences"


def test_workers_of_a_parameter_server_share_its_weights_and_count_how_stale_they_were(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), world=2, batch=4, strategy="parameter_server")
    server = rig.start_server(job, tmp_path)
    try:
        first, second = rig.run(job, tmp_path)
    finally:
        server.kill()
        server.communicate()

    assert facts_of(first)["weights_sha256"] == facts_of(second)["weights_sha256"]
    for events in (first, second):
        assert 0 <= facts_of(events)["staleness"]["mean"] <= facts_of(events)["staleness"]["max"]
        assert set(facts_of(events)["phases_derived"]["seconds"]) == {"forward", "backward", "communication"}
        assert set(facts_of(events)["phases_mixed"]["phases"]) == {"communication", "update"}


def test_a_taken_port_is_named(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), world=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        job["ports"][0] = taken.getsockname()[1]
        (first,) = rig.start(job, tmp_path, ranks=1)
        output, _ = first.communicate(timeout=WAIT_S)

    assert first.returncode == 81, output
    assert "Address already in use" in only(read_events(tmp_path, 0), "crashed")["message"]


def test_a_rank_ends_when_asked_and_its_peer_says_why_it_fails(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), world=2, steps=10_000_000)
    first, second = rig.start(job, tmp_path)
    until = time.monotonic() + WAIT_S
    while "steps" not in {event["event"] for event in read_events(tmp_path, 0)}:
        assert time.monotonic() < until
        assert first.poll() is None
        time.sleep(0.1)
    os.kill(first.pid, signal.SIGTERM)
    codes = [(process.communicate(timeout=WAIT_S), process.returncode)[1] for process in (first, second)]

    assert codes == [83, 81]
    assert read_events(tmp_path, 0)[-1]["event"] == "ended"
    assert read_events(tmp_path, 1)[-1]["error"] in {"UnavailableError", "AbortedError", "InternalError"}


def grouped_graph():
    """Convolutions in groups, by halves and one a channel, and a maximum over padded windows at stride 2."""
    net = GraphBuilder("grouped", Input(kind="image", shape=(4, 9, 9), classes=4))
    x = net.conv2d("halves", INPUT, filters=8, kernel=3, padding=1, groups=2)
    x = net.conv2d("each", x, filters=16, kernel=3, stride=2, padding=1, groups=8)
    x = net.max_pool2d("most", x, kernel=3, stride=2, padding=1)
    net.loss(net.linear("head", net.flatten("flat", x), features=4))
    return net.build(Sgd(learning_rate=0.01, momentum=0.9, weight_decay=0.01))


def test_losses_of_grouped_convolutions_and_padded_maxima_are_pytorchs(rig, torch_rig, tmp_path):
    losses = []
    for one, options in ((rig, {"derive_phases": False}), (torch_rig, {})):
        job = one.job(grouped_graph(), batch=8, warmup_steps=1, steps=5, **options)
        (events,) = one.run(job, tmp_path / type(one).__name__)
        losses.append(losses_of(events))

    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
