"""The host half of PyTorch: what it offers, refuses and starts, without PyTorch."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from paceline.frameworks import load_framework
from paceline.frameworks.torch import KNOBS, LAYER_KINDS, TORCH
from paceline.plan import expand
from paceline.plan.process import Host, Topology
from paceline.workloads import MODELS, load_workload
from plans import catalog, study


def trial(knobs=None, *, layers=False, device="cpu", **cluster):
    """A resolved trial of this framework; layers and device are set by hand, past what the planner would skip."""
    (expanded,) = expand(study(cluster, knobs), catalog(cores=8, capabilities=TORCH.capabilities))
    one = expanded.trial
    return replace(one, measure=replace(one.measure, layers=layers), cluster=replace(one.cluster, device=device))


def topology(hosts=1, interface=None, address="127.0.0.{}"):
    return Topology(
        hosts=tuple(
            Host(name=f"h{n}", address=address.format(n + 1), cores=(0, 1, 2, 3), interface=interface, ports=(29500,))
            for n in range(hosts)
        )
    )


def test_torch_is_found_by_name_and_not_imported():
    assert load_framework("torch") is TORCH
    assert "torch" not in sys.modules


def test_every_default_fits_its_own_knob():
    for name, knob in KNOBS.items():
        if knob.default is not None:
            assert knob.parse(knob.default) == knob.default, name
    assert KNOBS["bucket_bytes"].parse("25MiB") == 25 * 2**20


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_built(model):
    assert {layer.kind for layer in load_workload(model).layers} <= LAYER_KINDS


def test_data_parallel_means_ddp():
    assert TORCH.capabilities.resolve_strategy("data-parallel", "here") == "ddp"
    assert TORCH.capabilities.strategies["single"].max_workers == 1


def test_a_lone_worker_gets_threads_and_no_network():
    (worker,) = TORCH.processes(trial(threads_per_worker=2), topology())

    assert worker.env == {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert worker.cores == (0, 1)
    assert worker.argv == ("-m", "paceline_worker")


def test_workers_on_loopback_are_told_so():
    workers = TORCH.processes(trial(workers_per_host=2), topology())

    assert [worker.rank for worker in workers] == [0, 1]
    assert [worker.cores for worker in workers] == [(0,), (1,)]
    assert {worker.env["GLOO_SOCKET_IFNAME"] for worker in workers} == {"lo"}


def test_workers_use_the_interface_of_their_host():
    workers = TORCH.processes(trial(workers_per_host=2), topology(interface="eth7", address="10.0.0.{}"))

    assert {worker.env["GLOO_SOCKET_IFNAME"] for worker in workers} == {"eth7"}


def test_an_unknown_interface_is_left_to_gloo():
    workers = TORCH.processes(trial(workers_per_host=2), topology(address="10.0.0.{}"))

    assert all("GLOO_SOCKET_IFNAME" not in worker.env for worker in workers)


def refusal(one):
    return TORCH.capabilities.refusal(one, frozenset({"linear"}))


def test_ordinary_trials_are_taken():
    assert refusal(trial()) is None
    assert refusal(trial(layers=True)) is None
    assert refusal(trial(knobs={"overlap": False}, workers_per_host=2)) is None


def test_knobs_that_contradict_each_other_are_refused_with_the_reason():
    assert "bucket" in refusal(trial(knobs={"overlap": False, "bucket_bytes": "1MiB"}))
    assert "compile" in refusal(trial(knobs={"compile": True}, layers=True))
    assert "CPU" in refusal(trial(layers=True, device="cuda"))


def test_compression_and_lower_precision_are_not_exact():
    classes = {
        name: expand(study({"workers_per_host": 2}, knobs), catalog(capabilities=TORCH.capabilities))[0]
        for name, knobs in {"plain": None, "fp16": {"hook": "fp16"}, "bf16": {"precision": "bf16"}}.items()
    }

    assert {name: one.trial.framework.strategy_class for name, one in classes.items()} == {
        "plain": "exact",
        "fp16": "approximate",
        "bf16": "approximate",
    }


def planned(strategy, knobs=None, model="transformer", workers=2, batch=8, **options):
    """The refusal that `plan` would show."""
    asked = study({"workers_per_host": workers}, knobs, model=model, batch_per_worker=batch, **options)
    asked.axes["framework.strategy"] = (strategy,)
    (one,) = expand(asked, catalog(cores=8, capabilities=TORCH.capabilities))
    return one.refusal


@pytest.mark.parametrize("strategy", TORCH.capabilities.strategies)
def test_every_strategy_takes_a_transformer_and_a_lone_worker(strategy):
    assert planned(strategy, workers=TORCH.capabilities.strategies[strategy].max_workers or 2) is None
    assert planned(strategy, model="resnet20", workers=1) is None


@pytest.mark.parametrize(
    ("strategy", "asked", "reason"),
    [
        ("pipeline", {"model": "resnet20"}, "no attention"),
        ("tensor", {"model": "mlp"}, "no attention"),
        ("pipeline", {"workers": 4}, "2 blocks cannot fill 4 stages"),
        ("tensor", {"workers": 3}, "4 attention heads cannot be dealt out equally to 3 workers"),
        ("pipeline", {"knobs": {"microbatches": 5}}, "16 cannot be cut into 5"),
        ("pipeline", {"knobs": {"microbatches": 1}}, "at least one micro-batch per stage"),
        ("pipeline", {"knobs": {"accumulate": 2}}, "batch of their own"),
        ("pipeline", {"knobs": {"precision": "bf16"}}, "fp32"),
        ("fsdp", {"knobs": {"compile": True}}, "compile"),
        ("fsdp", {"knobs": {"hook": "fp16"}}, "belongs to strategy ddp"),
        ("ddp", {"knobs": {"schedule": "gpipe"}}, "belongs to strategy pipeline"),
        ("ddp", {"knobs": {"powersgd_rank": 2}}, "without hook"),
        ("ddp", {"knobs": {"accumulate": 3}}, "8 cannot be cut into 3"),
        ("ddp", {"knobs": {"accumulate": 2}, "model": "resnet20"}, "normalise each micro-batch"),
        ("post_local_sgd", {"knobs": {"local_sgd_start": 11}}, "begins with step 11"),
    ],
)
def test_what_a_strategy_rules_out_is_refused_with_the_reason(strategy, asked, reason):
    assert reason in planned(strategy, **asked)


def test_an_unknown_layer_kind_is_refused():
    assert "wavelet" in TORCH.capabilities.refusal(trial(), frozenset({"linear", "wavelet"}))
