"""A rank of PyTorch as it runs: exchange, phases, layer times, input, precision, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import time

import numpy as np
import psutil
import pytest

from paceline.workloads import load_workload
from torch_rig import PROBES, only, read_events, told_facts

WAIT_S = 60
"""For what takes milliseconds on a machine that is not busy."""


@pytest.fixture(scope="module")
def exchange(rig, tmp_path_factory):
    """An MLP trained by two ranks under several knobs, and by one process on the batches of both."""
    graph = load_workload("mlp", {"hidden": [64, 32]})
    folder = tmp_path_factory.mktemp("exchange")
    variants = {
        "default": {},
        "no_overlap": {"overlap": False},
        "small_buckets": {"bucket_bytes": 9000.0},
        "copied": {"gradient_as_bucket_view": False},
    }
    two = rig.job(graph, world=2, batch=8, steps=4) | {"variants": variants}
    one = rig.job(graph, world=1, batch=16, steps=4) | {"variants": {"default": {}}}
    rig.run(two, folder / "two", (str(PROBES / "exchange.py"),))
    rig.run(one, folder / "one", (str(PROBES / "exchange.py"),))
    return folder


def test_two_ranks_train_what_one_process_trains_on_both_batches(exchange):
    alone = np.load(exchange / "one" / "default.0.npz")
    for variant in ("default", "no_overlap", "small_buckets", "copied"):
        shared = np.load(exchange / "two" / f"{variant}.0.npz")
        for name in filter(lambda name: name.startswith("weights/"), alone.files):
            np.testing.assert_allclose(shared[name], alone[name], rtol=1e-4, atol=1e-6)


def test_ranks_end_with_the_same_weights(exchange):
    first, second = (json.loads((exchange / "two" / f"facts.{rank}.json").read_text()) for rank in (0, 1))
    for variant, facts in first.items():
        assert facts["weights_sha256"] == second[variant]["weights_sha256"]


def test_without_overlap_there_is_one_bucket_of_all_gradients(exchange):
    facts = json.loads((exchange / "two" / "facts.0.json").read_text())
    gradient_bytes = 4 * load_workload("mlp", {"hidden": [64, 32]}).num_parameters

    assert facts["no_overlap"]["bucket_bytes"] == [gradient_bytes]
    assert sum(facts["small_buckets"]["bucket_bytes"]) == gradient_bytes
    assert len(facts["small_buckets"]["bucket_bytes"]) > 1


@pytest.fixture(scope="module")
def worked(rig, tmp_path_factory):
    """LeNet-5 with a pipeline and layer times, through the worker's own door."""
    graph = load_workload("lenet5")
    job = rig.job(graph, batch=4, loader_workers=2, input="pipeline", layers=True, warmup_steps=2, steps=3)
    (events,) = rig.run(job, tmp_path_factory.mktemp("worked"))
    return graph, events


def test_ready_tells_what_is_in_force(worked):
    graph, events = worked
    ready = only(events, "ready")

    assert ready["parameters"] == graph.num_parameters
    assert ready["setup_s"] > 0
    assert ready["facts"]["threads"] == ready["facts"]["interop_threads"] == 1
    assert ready["facts"]["wrapped"] == "none"
    assert ready["facts"]["layer_hooks"] is True
    assert events[-1]["event"] == "done"


def test_phases_fill_the_step(worked):
    blocks = [event for event in worked[1] if event["event"] == "steps"]

    assert [(block["kind"], block["first"], len(block["wall_s"])) for block in blocks] == [
        ("first", 0, 1),
        ("warmup", 1, 1),
        ("measured", 2, 3),
    ]
    for block in blocks:
        assert list(block["phases"]) == ["data", "forward", "backward", "communication", "update"]
        np.testing.assert_allclose(np.sum(list(block["phases"].values()), axis=0), block["wall_s"], rtol=1e-9)
        assert np.min(list(block["phases"].values())) >= 0
        assert np.isfinite(block["loss"]).all()
    measured = blocks[-1]["phases"]
    assert np.sum(measured["communication"]) < np.sum(measured["backward"])


def test_every_layer_has_its_times(worked):
    graph, events = worked
    layers = only(events, "layers")
    with_parameters = {layer.name for layer in graph.layers if layer.parameters}

    assert set(layers["forward_s"]) == {layer.name for layer in graph.layers[1:]}
    assert set(layers["gradient_ready_s"]) == with_parameters
    assert layers["first"] == 2
    for times in (*layers["forward_s"].values(), *layers["gradient_ready_s"].values()):
        assert len(times) == 3
        assert min(times) > 0
    # Gradients come from the back: the head's is ready first.
    ready = {name: times[0] for name, times in layers["gradient_ready_s"].items()}
    assert min(ready, key=ready.get) == graph.losses[0].logits


@pytest.mark.parametrize("model", ["mlp", "lenet5"])
def test_pipeline_deals_the_samples_in_the_order_of_resident_input(rig, tmp_path, model):
    # 64 samples: batches of 2 x 10 wrap at the end of the file within a batch.
    job = rig.job(load_workload(model), world=2, batch=10, loader_workers=2, steps=9)
    (process,) = rig.start(job, tmp_path, (str(PROBES / "order.py"),), ranks=1)
    output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, output
    seen = json.loads((tmp_path / "order.json").read_text())

    assert all(seen["targets_equal"])
    assert seen["channels_last"]
    if model == "mlp":
        assert all(seen["inputs_equal"])
    else:  # cropped and flipped: the same images, moved
        assert not all(seen["inputs_equal"])


def test_bf16_and_compile_train(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), precision="bf16", compile=True, batch=4)
    (events,) = rig.run(job, tmp_path)
    losses = [loss for event in events if event["event"] == "steps" for loss in event["loss"]]

    assert len(losses) == 5
    assert np.isfinite(losses).all()
    assert only(events, "ready")["facts"]["precision"] == "bf16"
    first = next(event for event in events if event["event"] == "steps" and event["kind"] == "first")
    assert 0 < told_facts(events)["compile_in_first_step_s"] < first["wall_s"][0]
    assert "compile_s" not in told_facts(events)


def test_two_ranks_of_the_worker_exchange_a_model_with_batch_norm(rig, tmp_path):
    job = rig.job(load_workload("resnet20", {"image_size": 8}), world=2, batch=4)
    first, second = rig.run(job, tmp_path)

    assert only(first, "ready")["facts"]["wrapped"] == "DistributedDataParallel"
    assert told_facts(first)["weights_sha256"] == told_facts(second)["weights_sha256"]
    assert told_facts(first)["last_gradient"] == "stem_conv.weight"


def test_a_taken_port_is_named(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), world=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        job["rendezvous"]["ports"] = [taken.getsockname()[1]]
        first, second = rig.start(job, tmp_path)
        output, _ = first.communicate(timeout=WAIT_S)
        second.kill()
        second.communicate()

    assert first.returncode == 81, output
    assert "Address already in use" in only(read_events(tmp_path, 0), "crashed")["message"]


def test_loader_workers_die_with_their_rank(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), input="pipeline", loader_workers=2, steps=10_000_000)
    (rank,) = rig.start(job, tmp_path)
    until = time.monotonic() + WAIT_S
    while not any(event["event"] == "ready" for event in read_events(tmp_path, 0)):
        assert time.monotonic() < until
        assert rank.poll() is None
        time.sleep(0.1)
    loaders = psutil.Process(rank.pid).children(recursive=True)
    os.kill(rank.pid, signal.SIGKILL)
    rank.communicate()
    _, alive = psutil.wait_procs(loaders, timeout=WAIT_S)

    assert len(loaders) == 2
    assert not alive


def test_group_that_is_left_stays_until_the_process_ends(rig, tmp_path):
    # Its destructor can hang: it joins a thread of gloo's that may still want Python's lock.
    assert rig.probe("leaving", str(tmp_path / "store")) == {"there": True, "left": True}
