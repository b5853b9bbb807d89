"""The graph in Keras: the meaning of each layer, on all three backends. Gradients and the update are the contract's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from layer_meaning import (  # noqa: F401  pytest collects the tests among them
    close,
    image_graph,
    sequence_graph,
    test_attention_is_that_of_the_graph,
    test_average_counts_the_padding,
    test_convolution_is_cross_correlation_with_zeros_around,
    test_gelu_is_the_exact_one,
    test_loss_is_the_weighted_mean_over_batch_and_positions,
    test_lstm_has_gates_in_the_order_i_f_g_o_and_one_bias,
    test_shortcut_subsamples_and_pads_channels,
    test_sum_written_over_a_branch_is_the_sum,
)
from paceline.frameworks.keras import LAYER_KINDS
from paceline.workloads.graph import INPUT

# Channels first where a backend has it, so that both are seen; the contract trains in the default.
CASES = {"jax": "nchw", "torch": "nchw", "tensorflow": "nhwc"}


@pytest.fixture(scope="module", params=CASES)
def traced(request, rig_of, tmp_path_factory):
    rig = rig_of(request.param)
    folder = tmp_path_factory.mktemp("traces")
    asked = {}
    for graph in (image_graph(), sequence_graph()):
        files = {"answer": str(folder / f"{graph.name}.npz"), "layout": CASES[request.param]}
        asked[graph.name] = rig.files(graph, samples=8) | files
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    kinds = rig.probe("trace", str(folder / "asked.json"))
    return kinds, {name: dict(np.load(files["answer"])) for name, files in asked.items()}


@pytest.fixture
def traces(traced):
    return traced[1]


def test_host_lists_the_kinds_that_the_builder_knows(traced):
    assert {*traced[0], INPUT} == LAYER_KINDS


def test_batch_norm_normalises_with_the_biased_variance_and_keeps_it_too(traces):
    """Where Keras parts from the graph: it keeps the biased variance, which training does not read."""
    t = traces["image"]
    x = t["activation/conv"]
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shaped = (slice(None), None, None)

    close(t["activation/norm"], (x - mean[shaped]) / np.sqrt(variance[shaped] + 1e-3))
    close(t["before1/norm.running_mean"], 0.3 * mean)
    close(t["before1/norm.running_var"], 0.7 + 0.3 * variance)
