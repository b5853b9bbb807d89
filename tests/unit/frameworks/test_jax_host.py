"""The host half of JAX: what it offers, refuses and starts, without JAX."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from paceline.frameworks import load_framework
from paceline.frameworks.jax import JAX, KNOBS, LAYER_KINDS
from paceline.plan import expand
from paceline.plan.process import Host, Topology
from paceline.workloads import MODELS, load_workload
from plans import catalog, study


def trial(knobs=None, **cluster):
    (expanded,) = expand(study(cluster, knobs), catalog(cores=8, capabilities=JAX.capabilities))
    return expanded.trial


def topology():
    return Topology(hosts=(Host(name="h", address="127.0.0.1", cores=(0, 1, 2, 3), ports=(29500,)),))


def test_jax_is_found_by_name_and_not_imported():
    assert load_framework("jax") is JAX
    assert "jax" not in sys.modules


def test_every_default_fits_its_own_knob():
    for name, knob in KNOBS.items():
        assert knob.parse(knob.default) == knob.default, name


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_built(model):
    assert {layer.kind for layer in load_workload(model).layers} <= LAYER_KINDS


def test_data_parallel_means_shard_map():
    assert JAX.capabilities.resolve_strategy("data-parallel", "here") == "shard_map"
    assert JAX.capabilities.strategies["single"].max_workers == 1


def test_workers_get_cores_and_a_thread_pool_of_that_size():
    workers = JAX.processes(trial(workers_per_host=2, threads_per_worker=2), topology())

    assert [worker.rank for worker in workers] == [0, 1]
    assert [worker.cores for worker in workers] == [(0, 1), (2, 3)]
    assert all(worker.env == {"JAX_PLATFORMS": "cpu", "NPROC": "2"} for worker in workers)


def test_devices_of_one_process_share_its_cores_and_its_pool():
    asked = trial(workers_per_host=2, threads_per_worker=2)
    assert JAX.capabilities.strategies["shard_map_devices"].one_process
    framework = replace(asked.framework, strategy="shard_map_devices", one_process=True)

    (worker,) = JAX.processes(replace(asked, framework=framework), topology())

    assert (worker.cores, worker.env["NPROC"]) == ((0, 1, 2, 3), "4")


def test_bf16_is_approximate():
    assert trial({"precision": "bf16"}).framework.strategy_class == "approximate"
    assert trial().framework.strategy_class == "exact"
