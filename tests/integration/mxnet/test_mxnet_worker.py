"""A rank of MXNet as it runs: exchange, phases, how it ends, and whether it trains what PyTorch trains."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from layer_meaning import SMALL
from mxnet_rig import meeting
from paceline.workloads import load_workload
from torch_rig import only

WAIT_S = 120
"""For what takes seconds on a machine that is not busy."""
STEPS = 20
SHARED = {
    "dist_sync": {"world": 2},
    "dist_sync, workers update": {"world": 2, "update_on_kvstore": False},
    "kvstore_local": {"strategy": "kvstore_local", "devices": 2},
    "kvstore_device": {"strategy": "kvstore_device", "devices": 2, "update_on_kvstore": False},
}


def facts_of(events):
    return {name: value for event in events for name, value in event.get("facts", {}).items()}


def losses_of(events):
    return [loss for event in events if event["event"] == "steps" for loss in event["loss"]]


def evidence_of(events, what):
    (tensors,) = [event["tensors"] for event in events if event["event"] == "evidence" and event["what"] == what]
    return tensors


def assert_same_tensors(actual, expected):
    assert list(actual) == list(expected)
    for name, tensor in expected.items():
        np.testing.assert_allclose(actual[name]["sketch"], tensor["sketch"], atol=2e-5 * tensor["norm"] + 1e-9)


@pytest.fixture(scope="module")
def shared(rig, tmp_path_factory):
    """An MLP trained by two workers in every way, and by one on the batches of both."""
    graph = load_workload("mlp", {"hidden": [64, 32]})
    folder = tmp_path_factory.mktemp("shared")
    options = {"warmup_steps": 0, "steps": STEPS, "evidence": True}
    ways = {name: rig.job(graph, batch=8, **options, **way) for name, way in SHARED.items()}
    ways["alone"] = rig.job(graph, batch=16, **options)
    return {name: rig.run(job, folder / name) for name, job in ways.items()}


@pytest.mark.parametrize("way", SHARED)
def test_two_workers_train_what_one_trains_on_both_batches(shared, way):
    (alone,) = shared["alone"]
    for rank in shared[way]:
        assert_same_tensors(evidence_of(rank, "gradients"), evidence_of(alone, "gradients"))
        assert_same_tensors(evidence_of(rank, "weights"), evidence_of(alone, "weights"))
    np.testing.assert_allclose(np.mean([losses_of(rank) for rank in shared[way]], axis=0), losses_of(alone), rtol=1e-4)


def test_all_end_with_the_same_weights(shared):
    assert len({facts_of(rank)["weights_sha256"] for way in SHARED for rank in shared[way]}) == 1


@pytest.mark.parametrize("way, updates", [("dist_sync", True), ("dist_sync, workers update", False)])
def test_who_applies_the_optimizer_is_told(shared, way, updates):
    assert facts_of(shared[way][0])["update_on_kvstore"] is updates
    mixed = {"phases": ["communication", "update"], "why": "the key-value store applies the optimizer"}
    assert facts_of(shared[way][0]).get("phases_mixed") == (mixed if updates else None)
    assert facts_of(shared[way][0])["wrapped"] == "kvstore dist_sync"


def test_without_locks_the_loss_falls_and_staleness_is_counted(rig, tmp_path):
    graph = load_workload("mlp", {"hidden": [64, 32]})
    ranks = rig.run(rig.job(graph, world=2, strategy="dist_async", steps=STEPS), tmp_path)

    for events in ranks:
        assert losses_of(events)[-1] < losses_of(events)[0]
        assert 0 <= facts_of(events)["staleness"]["mean"] <= facts_of(events)["staleness"]["max"] <= STEPS + 1


def test_compressed_gradients_train_and_keep_weights_equal(rig, tmp_path):
    graph = load_workload("mlp", {"hidden": [64, 32]})
    job = rig.job(graph, world=2, gradient_compression="2bit", steps=STEPS, derive_phases=False)
    first, second = rig.run(job, tmp_path)

    assert facts_of(first)["weights_sha256"] == facts_of(second)["weights_sha256"]
    assert losses_of(first)[-1] < losses_of(first)[0]


@pytest.fixture(scope="module")
def worked(rig, tmp_path_factory):
    """LeNet-5 through the worker's own door."""
    graph = load_workload("lenet5")
    return graph, rig.run(rig.job(graph, batch=4), tmp_path_factory.mktemp("worked"))[0]


def test_ready_tells_what_is_in_force(worked):
    graph, events = worked
    ready = only(events, "ready")

    assert ready["parameters"] == graph.num_parameters
    assert ready["framework_version"] == "1.9.1"
    expected = {"threads": 1, "layout": "nchw", "wrapped": "none", "precision": "fp32", "blas": "onednn+openblas"}
    assert expected.items() <= ready["facts"].items()
    assert events[-1]["event"] == "done"


def test_phases_fill_the_step_and_the_rest_is_called_derived(worked):
    blocks = [event for event in worked[1] if event["event"] == "steps"]

    assert [(block["kind"], block["first"], len(block["wall_s"])) for block in blocks] == [
        ("first", 0, 1),
        ("warmup", 1, 1),
        ("measured", 2, 3),
    ]
    for block in blocks:
        assert list(block["phases"]) == ["data", "step"]
        np.testing.assert_allclose(np.sum(list(block["phases"].values()), axis=0), block["wall_s"], rtol=1e-9)
    derived = facts_of(worked[1])["phases_derived"]
    assert derived["by"] == "timers"
    assert list(derived["seconds"]) == ["forward", "backward", "update"]
    assert {len(times) for times in derived["programs_s"].values()} == {3}


def test_a_taken_port_is_named(rig):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = {"address": "127.0.0.1", "ports": [taken.getsockname()[1]]}
        env = rig.env | meeting({"rendezvous": where, "world_size": 2})
        scheduler = replace(rig, env=env).other("scheduler")
        output, _ = scheduler.communicate(timeout=WAIT_S)

    assert scheduler.returncode != 0
    assert "Address already in use" in output


FIRST_LOSS = {
    "resnet20": {},
    # Maximum over padded windows, and branches joined.
    "googlenet": SMALL["googlenet"] | {"dropout": 0.0},
    "lstm": SMALL["lstm"],
    "transformer": SMALL["transformer"] | {"dropout": 0.0},
}


@pytest.mark.parametrize("model", FIRST_LOSS)
def test_first_losses_are_pytorchs(rig, torch_rig, tmp_path, model):
    graph = load_workload(model, FIRST_LOSS[model])
    losses = []
    for one, options in ((rig, {"derive_phases": False}), (torch_rig, {})):
        job = one.job(graph, batch=8, warmup_steps=1, steps=3, **options)
        (events,) = one.run(job, tmp_path / type(one).__name__)
        losses.append(losses_of(events))

    np.testing.assert_allclose(losses[0][0], losses[1][0], rtol=1e-5)
    # Momentum, decay and norms show from the second step on; rounding grows from step to step.
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)


STUDY = """
[study]
name = "servers"
question = "What becomes of a run without its server?"
[workload]
model = "mlp"
batch_per_worker = 8
[framework]
name = "mxnet"
[framework.mxnet]
servers = 2
[cluster]
workers_per_host = 2
oversubscribe = true
[measure]
steps = 10_000_000
repeats = 1
"""


def of_this_run(folder, word):
    """Processes started for a run under this folder whose command has this word."""
    found = []
    for process in psutil.process_iter():
        try:
            if word in " ".join(process.cmdline()) and str(folder) in process.environ().get("PACELINE_JOB", ""):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.processes
def test_a_server_that_dies_ends_the_run_and_nothing_is_left(rig, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    environ = os.environ | {"PACELINE_STORE": str(tmp_path / "store"), "PACELINE_LOCK": str(tmp_path / "lock")}
    run = subprocess.Popen(
        [sys.executable, "-m", "paceline", "run", "study.toml"],
        env=environ,
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    until = time.monotonic() + WAIT_S
    while not any('"warmup"' in path.read_text() for path in tmp_path.rglob("events.0.jsonl")):
        assert run.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)
    servers = [process for process in of_this_run(tmp_path, "mxnet.role") if process.environ()["DMLC_ROLE"] == "server"]
    assert len(servers) == 2
    os.kill(servers[0].pid, signal.SIGKILL)
    output, _ = run.communicate(timeout=WAIT_S)

    assert run.returncode != 0
    assert "was killed by signal 9" in output
    assert of_this_run(tmp_path, "paceline_worker") == []
