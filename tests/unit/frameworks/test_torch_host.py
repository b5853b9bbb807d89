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


def test_an_unknown_layer_kind_is_refused():
    assert "wavelet" in TORCH.capabilities.refusal(trial(), frozenset({"linear", "wavelet"}))
