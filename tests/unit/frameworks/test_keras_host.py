"""The host half of Keras on its three backends: what it offers, refuses and starts, without Keras."""

from __future__ import annotations

import json
import sys

import pytest

from paceline.frameworks import load_framework
from paceline.frameworks.keras import LAYER_KINDS
from paceline.plan import expand
from paceline.plan.process import Host, Topology
from paceline.workloads import MODELS, load_workload
from plans import catalog, study

BACKENDS = ("tensorflow", "jax", "torch")


def trial(capabilities, knobs=None, **cluster):
    (expanded,) = expand(study(cluster, knobs), catalog(cores=8, capabilities=capabilities))
    return expanded.trial


def topology():
    return Topology(hosts=(Host(name="h", address="127.0.0.1", cores=(0, 1, 2, 3), ports=(29500, 29501)),))


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_rank_is_told_its_backend(backend):
    keras = load_framework(f"keras-{backend}")
    workers = keras.processes(trial(keras.capabilities, workers_per_host=2), topology())

    assert keras.environment == f"keras-{backend}-cpu"
    assert [worker.env["KERAS_BACKEND"] for worker in workers] == [backend] * 2
    assert [worker.cores for worker in workers] == [(0,), (1,)]
    assert "keras" not in sys.modules


def test_ranks_of_tensorflow_know_each_other_before_it_is_imported():
    keras = load_framework("keras-tensorflow")
    _, second = keras.processes(trial(keras.capabilities, workers_per_host=2), topology())

    assert json.loads(second.env["TF_CONFIG"]) == {
        "cluster": {"worker": ["127.0.0.1:29500", "127.0.0.1:29501"]},
        "task": {"type": "worker", "index": 1},
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_default_fits_its_own_knob(backend):
    for name, knob in load_framework(f"keras-{backend}").capabilities.knobs.items():
        assert knob.parse(knob.default) == knob.default, name


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_built(model):
    assert {layer.kind for layer in load_workload(model).layers} <= LAYER_KINDS


def test_bf16_makes_it_approximate():
    known = load_framework("keras-jax").capabilities

    assert known.class_of("single", {"precision": "bf16"}) == "approximate"
    assert known.class_of("single", {"precision": "fp32"}) == "exact"


def test_batch_norm_is_refused_where_it_would_see_all_workers_batches():
    known = load_framework("keras-jax").capabilities
    two, one = (trial(known, workers_per_host=n) for n in (2, 1))
    normed, plain = load_workload("resnet20"), load_workload("mlp")

    assert "normalises over the batches of all workers" in str(known.refuses_graph(two, normed))
    assert known.refuses_graph(two, plain) is None
    assert known.refuses_graph(one, normed) is None


def test_xla_is_refused_with_peers():
    known = load_framework("keras-tensorflow").capabilities

    assert "collectives" in str(known.refusal(trial(known, {"jit_compile": True}, workers_per_host=2), frozenset()))
