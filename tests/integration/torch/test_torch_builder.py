"""The graph in PyTorch: every model, and the meaning of each layer against NumPy written for this test alone."""

from __future__ import annotations

import json

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
from paceline.frameworks.torch import LAYER_KINDS
from paceline.workloads import MODELS, load_workload
from paceline.workloads.graph import INPUT


@pytest.fixture(scope="module")
def models(rig, tmp_path_factory):
    """What the probe found, and the graphs it was asked about."""
    small = {name: load_workload(name, SMALL.get(name, {})) for name in MODELS}
    full = {name: load_workload(name) for name in MODELS}
    asked = {
        "small": {name: rig.files(graph, samples=4) for name, graph in small.items()},
        "full": {name: graph.to_json() for name, graph in full.items()},
    }
    path = tmp_path_factory.mktemp("models") / "asked.json"
    path.write_text(json.dumps(asked), encoding="utf-8")
    return rig.probe("models", str(path)), small, full


def test_host_lists_the_kinds_that_the_builder_knows(models):
    assert set(models[0]["kinds"]) | {INPUT} == LAYER_KINDS


@pytest.mark.parametrize("name", MODELS)
def test_full_size_model_has_the_graphs_number_of_parameters(models, name):
    found, _, full = models

    assert found["full"][name] == full[name].num_parameters


@pytest.mark.parametrize("name", MODELS)
def test_model_starts_from_the_file_and_takes_a_step(models, name):
    found, small, _ = models
    seen = dict(found["small"][name])

    assert seen.pop("loss") is not None
    assert seen == {
        "parameters": small[name].num_parameters,
        "weights_equal": True,
        "without_gradient": [],
        "gradients_finite": True,
        "wrong_shapes": [],
        "input_untouched": True,
    }


@pytest.fixture(scope="module")
def traces(rig, tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    asked = {}
    for graph in (image_graph(), sequence_graph()):
        asked[graph.name] = rig.files(graph, samples=8) | {"answer": str(folder / f"{graph.name}.npz")}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    rig.probe("trace", str(folder / "asked.json"))
    return {name: dict(np.load(files["answer"])) for name, files in asked.items()}


def test_compiler_sees_the_model_whole(traces):
    assert traces["image"]["graph_breaks"] == 0


def test_second_bias_of_the_lstm_stays_zero(traces):
    assert traces["sequence"]["untrained"].tolist() == [0.0]
