"""The host half of MXNet: what it offers, refuses and starts, without MXNet."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from paceline.frameworks import load_framework
from paceline.frameworks.mxnet import KNOBS, LAYER_KINDS, MXNET, ROLE_ARGV
from paceline.plan import expand
from paceline.plan.process import Host, Topology
from paceline.workloads import MODELS, load_workload
from plans import catalog, study


def trial(knobs=None, strategy="dist_sync", **cluster):
    """A resolved trial of this framework, whether or not the planner's one host could run it."""
    asked = study(cluster, knobs)
    asked = replace(asked, axes={**asked.axes, "framework.strategy": (strategy,)})
    (expanded,) = expand(asked, catalog(cores=8, capabilities=MXNET.capabilities))
    return expanded.trial


def topology(hosts=1):
    return Topology(
        hosts=tuple(
            Host(name=f"h{k}", address=f"10.0.0.{k + 1}", cores=(0, 1, 2, 3), interface="eth1", ports=(29500 + k,))
            for k in range(hosts)
        )
    )


def test_mxnet_is_found_by_name_and_not_imported():
    assert load_framework("mxnet") is MXNET
    assert "mxnet" not in sys.modules


def test_every_default_fits_its_own_knob():
    for name, knob in KNOBS.items():
        assert knob.parse(knob.default) == knob.default, name


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_built(model):
    assert {layer.kind for layer in load_workload(model).layers} <= LAYER_KINDS


def test_data_parallel_means_dist_sync():
    assert MXNET.capabilities.resolve_strategy("data-parallel", "here") == "dist_sync"
    assert MXNET.capabilities.strategies["single"].max_workers == 1


def test_a_lone_worker_has_threads_and_nobody_to_meet():
    (worker,) = MXNET.processes(trial(threads_per_worker=2), topology())

    assert worker.cores == (0, 1)
    assert worker.env["OMP_NUM_THREADS"] == "2"
    assert not [name for name in worker.env if name.startswith("DMLC")]


def test_knobs_become_variables():
    knobs = {"onednn": False, "engine": "NaiveEngine", "bulk": 1}
    (worker,) = MXNET.processes(trial(knobs), topology())

    assert worker.env["MXNET_MKLDNN_ENABLED"] == "0"
    assert worker.env["MXNET_ENGINE_TYPE"] == "NaiveEngine"
    assert worker.env["MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN"] == "1"


def test_scheduler_and_servers_come_first_and_share_their_hosts_cores():
    processes = MXNET.processes(trial(hosts=2, workers_per_host=2), topology(2))

    assert [p.name for p in processes] == [
        "scheduler0",
        "server0",
        "server1",
        "worker0",
        "worker1",
        "worker2",
        "worker3",
    ]
    assert [(p.host, p.cores) for p in processes[:3]] == [(0, (0, 1)), (0, (0, 1)), (1, (0, 1))]
    assert [(p.host, p.cores) for p in processes[3:]] == [(0, (0,)), (0, (1,)), (1, (0,)), (1, (1,))]
    assert all(p.argv == ROLE_ARGV and p.rank is None for p in processes[:3])


def test_all_of_ps_lite_meet_at_the_first_host_and_name_their_own():
    processes = MXNET.processes(trial({"servers": 3}, hosts=2), topology(2))

    meetings = {(p.env["DMLC_PS_ROOT_URI"], p.env["DMLC_PS_ROOT_PORT"]) for p in processes}
    assert meetings == {("10.0.0.1", "29500")}
    assert {(p.env["DMLC_NUM_SERVER"], p.env["DMLC_NUM_WORKER"]) for p in processes} == {("3", "2")}
    assert [p.env["DMLC_NODE_HOST"] for p in processes] == [f"10.0.0.{p.host + 1}" for p in processes]
    assert {p.env["DMLC_INTERFACE"] for p in processes} == {"eth1"}
    assert [p.env["DMLC_ROLE"] for p in processes] == [p.role for p in processes]


@pytest.mark.parametrize("strategy", ["kvstore_local", "kvstore_device"])
def test_devices_of_one_process_have_all_its_cores_and_threads_each(strategy):
    (worker,) = MXNET.processes(trial(strategy=strategy, workers_per_host=2, threads_per_worker=2), topology())

    assert worker.cores == (0, 1, 2, 3)
    assert worker.env["OMP_NUM_THREADS"] == "2"


@pytest.mark.parametrize(
    "strategy, knobs, cluster, reason",
    [
        ("kvstore_local", {}, {"hosts": 2}, "dist_sync"),
        ("single", {"servers": 1}, {}, "no servers"),
        ("kvstore_device", {"gradient_compression": "2bit"}, {"workers_per_host": 2}, "compressed only"),
        ("dist_async", {"update_on_kvstore": False}, {"workers_per_host": 2}, "as they come"),
        ("dist_sync", {"servers": 2, "gradient_compression": "2bit"}, {"workers_per_host": 2}, None),
    ],
)
def test_what_mxnet_cannot_do_is_refused_with_the_reason(strategy, knobs, cluster, reason):
    refusal = MXNET.capabilities.refuses(trial(knobs, strategy, **cluster))

    assert refusal is None if reason is None else reason in refusal


def test_classes_follow_strategy_and_compression():
    assert trial().framework.strategy_class == "exact"
    assert trial({"gradient_compression": "2bit"}).framework.strategy_class == "approximate"
    assert trial(strategy="dist_async").framework.strategy_class == "asynchronous"
