"""What each layer of the graph means, against NumPy written for these tests alone: one set of tests for all builders.

A framework's test module imports the tests, and gives them a fixture `traces`: graph name → what passed through it in
three steps on four samples, as NumPy arrays in the graph's own shapes (input, targets, activation/LAYER, lossN,
beforeN/TENSOR, gradientN/TENSOR).
"""

from __future__ import annotations

from math import erf

import numpy as np
import pytest

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Input, Sgd

SMALL = {
    # The least image that fits, and few classes: the same layers, a hundredth of the work.
    "alexnet": {"image_size": 63, "num_classes": 10},
    "vgg16": {"image_size": 32, "num_classes": 10},
    "googlenet": {"image_size": 224, "num_classes": 10, "auxiliary_heads": True},
    "resnet50": {"image_size": 64, "num_classes": 10},
    "lstm": {"vocabulary": 50, "sequence_length": 6, "embedding": 8, "hidden": 12},
    "transformer": {"vocabulary": 50, "sequence_length": 6, "hidden": 16, "dropout": 0.1},
    "gpt": {"vocabulary": 50, "sequence_length": 6, "hidden": 16},
}


def image_graph():
    net = GraphBuilder("image", Input(kind="image", shape=(3, 9, 9), classes=4))
    x = net.conv2d("conv", INPUT, filters=4, kernel=3, stride=2, padding=1)
    x = net.batch_norm("norm", x, momentum=0.3, eps=1e-3)
    x = net.relu("relu", x)
    y = net.batch_norm("branch_norm", net.conv2d("branch", x, filters=4, kernel=3, padding=1, bias=False))
    x = net.add("sum", x, y)
    x = net.avg_pool2d("average", net.relu("sum_relu", x), kernel=3, stride=2, padding=1)
    x = net.subsample_pad("shortcut", x, stride=2, pad_low=1, pad_high=2)
    net.loss(net.linear("head", net.flatten("flat", x), features=4))
    return net.build(Sgd(learning_rate=0.1, momentum=0.9, weight_decay=0.01))


def sequence_graph():
    given = Input(kind="tokens", shape=(5,), classes=11, target="next-token", vocabulary=11)
    net = GraphBuilder("sequence", given)
    x = net.embedding("embedding", INPUT, features=6)
    x = net.position_embedding("position", x)
    x = net.lstm("lstm", x, hidden=6)
    x = net.layer_norm("norm", x)
    x = net.attention("causal", x, heads=2, causal=True)
    x = net.gelu("gelu", x)
    x = net.attention("full", x, heads=3)
    net.loss(net.linear("head", x, features=11), weight=0.5)
    return net.build(Sgd(learning_rate=0.2, momentum=0.5, weight_decay=0.0))


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=2e-5)


def test_convolution_is_cross_correlation_with_zeros_around(traces):
    t = traces["image"]
    weight, bias = t["before0/conv.weight"], t["before0/conv.bias"]
    padded = np.pad(t["input"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.empty_like(t["activation/conv"])
    for row, column in np.ndindex(5, 5):
        window = padded[:, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3]
        expected[:, :, row, column] = np.einsum("bchw,fchw->bf", window, weight) + bias

    close(t["activation/conv"], expected)


def test_batch_norm_normalises_with_the_biased_variance_and_keeps_the_unbiased_one(traces):
    t = traces["image"]
    x = t["activation/conv"]
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shaped = (slice(None), None, None)

    close(t["activation/norm"], (x - mean[shaped]) / np.sqrt(variance[shaped] + 1e-3))
    count = x.size / x.shape[1]
    close(t["before1/norm.running_mean"], 0.3 * mean)
    close(t["before1/norm.running_var"], 0.7 + 0.3 * variance * count / (count - 1))


def test_sum_written_over_a_branch_is_the_sum(traces):
    t = traces["image"]
    relu = np.maximum(t["activation/norm"], 0)

    close(t["activation/relu"], relu)
    close(t["activation/sum"], relu + t["activation/branch_norm"])


def test_average_counts_the_padding(traces):
    t = traces["image"]
    padded = np.pad(t["activation/sum_relu"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.empty_like(t["activation/average"])
    for row, column in np.ndindex(3, 3):
        expected[:, :, row, column] = padded[:, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3].sum((2, 3)) / 9

    close(t["activation/average"], expected)


def test_shortcut_subsamples_and_pads_channels(traces):
    t = traces["image"]
    expected = np.pad(t["activation/average"][:, :, ::2, ::2], ((0, 0), (1, 2), (0, 0), (0, 0)))

    close(t["activation/shortcut"], expected)
    close(t["activation/flat"], expected.reshape(4, -1))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_has_gates_in_the_order_i_f_g_o_and_one_bias(traces):
    t = traces["sequence"]
    x = t["activation/position"]
    w_x, w_h, bias = (t[f"before0/lstm.{name}"] for name in ("w_x", "w_h", "bias"))
    h = c = np.zeros((4, 6))
    for step in range(5):
        i, f, g, o = np.split(x[:, step] @ w_x.T + h @ w_h.T + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        close(t["activation/lstm"][:, step], h)


def attention(x, t, name, heads, causal):
    length, size = x.shape[1:]
    q, k, v = np.split(x @ t[f"before0/{name}.qkv_weight"].T + t[f"before0/{name}.qkv_bias"], 3, axis=2)
    joined = np.empty_like(x)
    width = size // heads
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        scores = q[:, :, own] @ k[:, :, own].transpose(0, 2, 1) / np.sqrt(width)
        if causal:
            scores[:, np.triu_indices(length, 1)[0], np.triu_indices(length, 1)[1]] = -np.inf
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        joined[:, :, own] = shares / shares.sum(axis=2, keepdims=True) @ v[:, :, own]
    return joined @ t[f"before0/{name}.out_weight"].T + t[f"before0/{name}.out_bias"]


def test_attention_is_that_of_the_graph(traces):
    t = traces["sequence"]

    close(t["activation/causal"], attention(t["activation/norm"], t, "causal", heads=2, causal=True))
    close(t["activation/full"], attention(t["activation/gelu"], t, "full", heads=3, causal=False))


def test_gelu_is_the_exact_one(traces):
    t = traces["sequence"]
    x = t["activation/causal"]

    close(t["activation/gelu"], x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))))


def test_loss_is_the_weighted_mean_over_batch_and_positions(traces):
    t = traces["sequence"]
    logits = t["activation/head"].astype(np.float64).reshape(-1, 11)
    log_sums = np.log(np.exp(logits).sum(axis=1))
    chosen = logits[np.arange(20), t["targets"].ravel()]

    close(t["loss0"], 0.5 * (log_sums - chosen).mean())


@pytest.mark.parametrize("graph, rate, momentum, decay", [("image", 0.1, 0.9, 0.01), ("sequence", 0.2, 0.5, 0.0)])
def test_sgd_is_the_graphs_rule(traces, graph, rate, momentum, decay):
    t = traces[graph]
    names = [key.partition("/")[2] for key in t if key.startswith("gradient0/")]
    assert names
    for name in names:
        weight, velocity = t[f"before0/{name}"].astype(np.float64), 0.0
        for step in range(3):
            velocity = momentum * velocity + t[f"gradient{step}/{name}"] + decay * weight
            weight = weight - rate * velocity
            close(t[f"before{step + 1}/{name}"], weight)
