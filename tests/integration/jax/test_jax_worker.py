"""What is particular to a rank of JAX: its sorts of workers, phases, precision, cache, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from jax_rig import PROBES
from layer_meaning import image_graph
from paceline.workloads import load_workload
from torch_rig import only, read_events

WAIT_S = 120
"""For what takes seconds on a machine that is not busy."""
VARIANTS = {"flat": {"flatten": True}, "tree": {"flatten": False}, "step by step": {"run_ahead": 0}}
SORTS = {
    "alone": {"world": 1, "devices": 1},
    "ranks": {"world": 2, "devices": 1},
    "devices": {"world": 1, "devices": 2},
    "ranks of devices": {"world": 2, "devices": 2},
}


@pytest.fixture(scope="module")
def exchange(rig, tmp_path_factory):
    """An MLP trained by workers of several sorts under several knobs, and by one worker on the batches of all."""
    graph = load_workload("mlp", {"hidden": [64, 32]})
    folder = tmp_path_factory.mktemp("exchange")
    for sort, shape in SORTS.items():
        job = rig.job(graph, **shape, batch=16 // (shape["world"] * shape["devices"]), steps=4, warmup_steps=0)
        rig.run(job | {"variants": VARIANTS}, folder / sort, (str(PROBES / "exchange.py"),))
    return folder


@pytest.mark.parametrize("sort", SORTS)
def test_workers_train_what_one_worker_trains_on_the_batches_of_all(exchange, sort):
    alone = np.load(exchange / "alone" / "step by step.0.npz")
    for variant in VARIANTS:
        shared = np.load(exchange / sort / f"{variant}.0.npz")
        for name in alone.files:
            np.testing.assert_allclose(shared[name], alone[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sort", ["ranks", "devices", "ranks of devices"])
def test_workers_end_with_the_same_weights(exchange, sort):
    digests = [json.loads(path.read_text()) for path in sorted((exchange / sort).glob("digests.*.json"))]

    assert len(digests) == SORTS[sort]["world"]
    for variant in VARIANTS:
        assert len({digest for rank in digests for digest in rank[variant]}) == 1


def facts_of(events):
    return {name: value for event in events for name, value in event.get("facts", {}).items()}


def losses_of(events):
    return [loss for event in events if event["event"] == "steps" for loss in event["loss"]]


def evidence_of(events):
    return {event["what"]: event["tensors"] for event in events if event["event"] == "evidence"}


def test_evidence_of_devices_is_that_of_one_worker_with_both_batches(rig, tmp_path):
    graph = load_workload("mlp", {"hidden": [32]})
    shown = []
    for sort, shape in (("alone", {"batch": 8}), ("devices", {"batch": 4, "devices": 2})):
        (events,) = rig.run(rig.job(graph, **shape, evidence=True, warmup_steps=0, steps=4), tmp_path / sort)
        assert "phases_derived" not in facts_of(events)
        shown.append((evidence_of(events), losses_of(events)))
    (alone, losses), (devices, mean_losses) = shown

    np.testing.assert_allclose(mean_losses, losses, rtol=1e-5)
    assert set(alone) == {"gradients", "weights", "statistics"}
    for what, tensors in alone.items():
        assert set(tensors) == set(devices[what])
        for name, told in tensors.items():
            np.testing.assert_allclose(devices[what][name]["sketch"], told["sketch"], rtol=1e-3, atol=1e-5)


def test_batch_norms_of_devices_are_each_their_own(rig, tmp_path):
    """As those of ranks: two workers in one process lose what two processes lose."""
    jobs = {shape: rig.job(image_graph(), batch=4, derive_phases=False, **{shape: 2}) for shape in ("devices", "world")}
    (one,), two = (rig.run(job, tmp_path / shape) for shape, job in jobs.items())

    np.testing.assert_allclose(losses_of(one), np.mean([losses_of(events) for events in two], axis=0), rtol=1e-4)
    assert facts_of(one)["wrapped"] == "shard_map, 2 devices of a process"
    assert facts_of(one)["weights_equal_on_devices"]
    assert facts_of(one)["framework_flops"] == pytest.approx(facts_of(two[0])["framework_flops"], rel=0.05)


def test_derived_phases_of_two_ranks_have_the_exchange_too(rig, tmp_path):
    for events in rig.run(rig.job(load_workload("mlp", {"hidden": [16]}), world=2), tmp_path):
        assert set(facts_of(events)["phases_derived"]["seconds"]) == {"forward", "backward", "update", "communication"}


@pytest.fixture(scope="module")
def worked(rig, tmp_path_factory):
    """LeNet-5 twice through the worker's own door, with a compilation cache."""
    graph = load_workload("lenet5")
    job = rig.job(graph, batch=4, compilation_cache=True)
    folder = tmp_path_factory.mktemp("worked")
    return graph, *(rig.run(job, folder / name)[0] for name in ("cold", "warm"))


def test_ready_tells_what_is_in_force(worked):
    graph, events, _ = worked
    ready = only(events, "ready")

    assert ready["parameters"] == graph.num_parameters
    assert ready["facts"]["threads"] == 1
    assert ready["facts"]["layout"] == "nhwc"
    assert ready["facts"]["wrapped"] == "none"
    assert 0 < ready["facts"]["trace_s"] < ready["facts"]["compile_s"] < ready["setup_s"]
    assert ready["facts"]["framework_flops"] > 0
    assert ready["facts"]["blas"].startswith("xla+")
    assert events[-1]["event"] == "done"


def test_second_run_finds_its_programs_in_the_cache_and_trains_the_same(worked):
    _, cold, warm = worked

    assert only(cold, "ready")["facts"]["compilation_cache"] == "cold"
    assert only(warm, "ready")["facts"]["compilation_cache"] == "warm"
    assert facts_of(cold)["weights_sha256"] == facts_of(warm)["weights_sha256"]


def test_all_ranks_find_their_programs_and_train_the_same(rig, tmp_path):
    job = rig.job(load_workload("lenet5"), world=2, batch=4, compilation_cache=True)
    cold, warm = rig.run(job, tmp_path / "cold"), rig.run(job, tmp_path / "warm")

    assert [only(events, "ready")["facts"]["compilation_cache"] for events in cold + warm] == ["cold"] * 2 + [
        "warm"
    ] * 2
    assert len({facts_of(events)["weights_sha256"] for events in cold + warm}) == 1


def test_a_damaged_program_is_compiled_again(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), world=2, compilation_cache=True)
    cache = Path(job["weights"]["path"]).parents[1]
    of_others = set(cache.glob("jax/*/rank1of2/*"))
    rig.run(job, tmp_path / "cold")
    kept = set(cache.glob("jax/*/rank1of2/*")) - of_others
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
    again = rig.run(job, tmp_path / "again")

    assert kept
    assert all(events[-1]["event"] == "done" for events in again)
    assert all(path.stat().st_size > 100 for path in kept)


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
    assert (derived["by"], derived["steps"]) == ("differences", 3)
    assert set(derived["seconds"]) == {"forward", "backward", "update"}
    assert {len(times) for times in derived["programs_s"].values()} == {3}
    total = sum(derived["seconds"].values())
    assert total == pytest.approx(derived["step_s"]) == pytest.approx(np.median(derived["programs_s"]["until_update"]))


def test_bf16_trains(rig, tmp_path):
    job = rig.job(load_workload("lenet5"), precision="bf16", batch=4, derive_phases=False)
    (events,) = rig.run(job, tmp_path)

    assert len(losses_of(events)) == 5
    assert np.isfinite(losses_of(events)).all()
    assert "phases_derived" not in facts_of(events)


def test_a_taken_port_is_named(rig, tmp_path):
    job = rig.job(load_workload("mlp", {"hidden": [16]}), world=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        job["rendezvous"]["ports"] = [taken.getsockname()[1]]
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
    assert "Gloo" in read_events(tmp_path, 1)[-1]["message"]
