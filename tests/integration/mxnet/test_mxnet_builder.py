"""The graph in MXNet: every model, and the meaning of each layer, with oneDNN and without."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from layer_meaning import (  # noqa: F401  pytest collects the tests among them
    SMALL,
    image_graph,
    sequence_graph,
    test_attention_is_that_of_the_graph,
    test_average_counts_the_padding,
    test_batch_norm_normalises_with_the_biased_variance_and_keeps_the_unbiased_one,
    test_convolution_is_cross_correlation_with_zeros_around,
    test_gelu_is_the_exact_one,
    test_loss_is_the_weighted_mean_over_batch_and_positions,
    test_lstm_has_gates_in_the_order_i_f_g_o_and_one_bias,
    test_sgd_is_the_graphs_rule,
    test_shortcut_subsamples_and_pads_channels,
    test_sum_written_over_a_branch_is_the_sum,
)
from paceline.frameworks.mxnet import LAYER_KINDS
from paceline.workloads import MODELS, load_workload
from paceline.workloads.graph import INPUT

STEPPED = [name for name in MODELS if name not in {"resnet32", "resnet44", "resnet56", "resnet110"}]
"""Deeper ResNets have ResNet-20's layers."""


@pytest.fixture(scope="module")
def models(rig, tmp_path_factory):
    """What the probe found, and the graphs it was asked about."""
    full = {name: load_workload(name) for name in MODELS}
    small = {name: load_workload(name, SMALL.get(name, {})) for name in STEPPED}
    asked = {
        "small": {name: rig.files(graph, samples=4) for name, graph in small.items()},
        "full": {name: graph.to_json() for name, graph in full.items()},
    }
    path = tmp_path_factory.mktemp("models") / "asked.json"
    path.write_text(json.dumps(asked), encoding="utf-8")
    return rig.probe("models", str(path)), full


@pytest.fixture(scope="module", params=["onednn", "own kernels"])
def traces(request, rig, tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    asked = {}
    for graph in (image_graph(), sequence_graph()):
        asked[graph.name] = rig.files(graph, samples=8) | {"answer": str(folder / f"{graph.name}.npz")}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    onednn = "1" if request.param == "onednn" else "0"
    env = {"MXNET_MKLDNN_ENABLED": onednn, "MXNET_USE_MKLDNN_RNN": onednn}
    replace(rig, env=rig.env | env).probe("trace", str(folder / "asked.json"))
    return {name: dict(np.load(files["answer"])) for name, files in asked.items()}


def test_host_lists_the_kinds_that_the_builder_knows(models):
    assert set(models[0]["kinds"]) | {INPUT} == LAYER_KINDS


@pytest.mark.parametrize("name", MODELS)
def test_full_size_model_has_the_graphs_parameters(models, name):
    found, full = models

    assert found["parameters"][name] == full[name].num_parameters


@pytest.mark.parametrize("name", STEPPED)
def test_model_starts_from_the_file_and_takes_a_step(models, name):
    seen = models[0]["small"][name]

    assert seen["weights_equal"]
    assert np.isfinite(seen["loss"])
    assert seen["gradients_finite"]
    assert seen["without_gradient"] == []
