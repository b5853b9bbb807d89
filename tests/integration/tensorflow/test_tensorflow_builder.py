"""The graph in TensorFlow: the meaning of each layer. That every model agrees is in the contract of all frameworks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from layer_meaning import (  # noqa: F401  pytest collects the tests among them
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
from paceline.frameworks.tensorflow import LAYER_KINDS
from paceline.workloads.graph import INPUT


@pytest.fixture(scope="module")
def probed(rig, tmp_path_factory):
    """(kinds, traces): the LSTM of the second form of the sequence is a loop."""
    folder = tmp_path_factory.mktemp("traces")
    asked = {}
    for name, graph, unroll in (
        ("image", image_graph(), True),
        ("unrolled", sequence_graph(), True),
        ("loop", sequence_graph(), False),
    ):
        asked[name] = rig.files(graph, samples=8) | {"answer": str(folder / f"{name}.npz"), "unroll": unroll}
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    kinds = rig.probe("trace", str(folder / "asked.json"))
    return kinds, {name: dict(np.load(files["answer"])) for name, files in asked.items()}


@pytest.fixture(scope="module", params=["unrolled", "loop"])
def traces(request, probed):
    return {"image": probed[1]["image"], "sequence": probed[1][request.param]}


def test_host_lists_the_kinds_that_the_builder_knows(probed):
    assert set(probed[0]) | {INPUT} == LAYER_KINDS
