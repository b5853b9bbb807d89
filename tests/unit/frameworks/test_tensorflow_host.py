"""The host half of TensorFlow: what it offers, refuses and starts, without TensorFlow."""

from __future__ import annotations

import json
import sys

import pytest

from paceline.frameworks import load_framework
from paceline.frameworks.tensorflow import KNOBS, LAYER_KINDS, SERVER_ARGV, TENSORFLOW
from paceline.plan import expand
from paceline.plan.process import Host, Topology
from paceline.spec import read_study
from paceline.workloads import MODELS, load_workload
from plans import catalog


def expanded(strategy="data-parallel", knobs=None, **cluster):
    asked = read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_per_worker": 8},
            "framework": {"name": "torch", "strategy": strategy, "torch": knobs or {}},
            "cluster": cluster,
        }
    )
    (one,) = expand(asked, catalog(cores=8, capabilities=TENSORFLOW.capabilities))
    return one


def topology(hosts=1):
    return Topology(
        hosts=tuple(
            Host(name=f"h{k}", address=f"10.0.0.{k}", cores=(0, 1, 2, 3), ports=(5000, 5001, 5002))
            for k in range(hosts)
        )
    )


def config(process):
    return json.loads(process.env["TF_CONFIG"])


def test_tensorflow_is_found_by_name_and_not_imported():
    assert load_framework("tensorflow") is TENSORFLOW
    assert "tensorflow" not in sys.modules


def test_every_default_fits_its_own_knob():
    for name, knob in KNOBS.items():
        assert knob.parse(knob.default) == knob.default, name


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_built(model):
    assert {layer.kind for layer in load_workload(model).layers} <= LAYER_KINDS


def test_data_parallel_means_multi_worker_mirrored():
    assert TENSORFLOW.capabilities.resolve_strategy("data-parallel", "here") == "multi_worker_mirrored"
    assert TENSORFLOW.capabilities.class_of("multi_worker_mirrored", {"precision": "bf16"}) == "approximate"
    assert TENSORFLOW.capabilities.class_of("parameter_server", {"precision": "fp32"}) == "asynchronous"


def test_a_lone_worker_is_told_of_no_cluster():
    (worker,) = TENSORFLOW.processes(expanded().trial, topology())

    assert worker.env == {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


def test_workers_learn_where_all_of_them_are():
    trial = expanded(workers_per_host=2).trial
    workers = TENSORFLOW.processes(trial, topology())

    assert TENSORFLOW.capabilities.ports(trial) == 2
    assert [worker.rank for worker in workers] == [0, 1]
    assert [config(worker)["task"] for worker in workers] == [{"type": "worker", "index": k} for k in (0, 1)]
    assert all(config(worker)["cluster"] == {"worker": ["10.0.0.0:5000", "10.0.0.0:5001"]} for worker in workers)


def test_mirrored_workers_are_one_process_with_the_cores_of_all():
    trial = expanded("mirrored", workers_per_host=2).trial
    (worker,) = TENSORFLOW.processes(trial, topology())

    assert worker.cores == (0, 1)
    assert "TF_CONFIG" not in worker.env


def test_a_parameter_server_shares_the_cores_of_its_hosts_workers():
    trial = expanded("parameter_server", workers_per_host=2).trial
    server, *workers = TENSORFLOW.processes(trial, topology())

    assert TENSORFLOW.capabilities.ports(trial) == 3
    assert (server.role, server.rank, server.argv, server.cores) == ("server", None, SERVER_ARGV, (0, 1))
    assert config(server)["task"] == {"type": "ps", "index": 0}
    assert config(server)["cluster"] == config(workers[1])["cluster"]
    assert config(server)["cluster"]["ps"] == ["10.0.0.0:5002"]
    assert [worker.rank for worker in workers] == [0, 1]


@pytest.mark.parametrize(
    ("strategy", "knobs", "word"),
    [
        ("single", {"eager": True, "jit_compile": True}, "eager"),
        ("parameter_server", {"jit_compile": True}, "graph"),
        ("parameter_server", {"eager": True}, "graph"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(strategy, knobs, word):
    assert word in expanded(strategy, knobs).refusal
