from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.workloads import MODELS, load_workload
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.cost import cost
from paceline.workloads.graph import INPUT, Input, Sgd


@pytest.mark.parametrize("name", MODELS)
def test_totals_are_the_sums_of_the_layers(name):
    graph = load_workload(name)
    total = cost(graph)

    assert [part.layer for part in total.layers] == [layer.name for layer in graph.layers]
    assert total.parameters == graph.num_parameters
    assert total.gradient_bytes == 4 * graph.num_parameters
    assert total.forward_flops == 2 * total.macs == sum(part.forward_flops for part in total.layers)
    assert total.backward_flops == sum(part.backward_flops for part in total.layers)
    assert total.activation_bytes == sum(part.activation_bytes for part in total.layers)


@given(st.lists(st.integers(1, 50), max_size=5), st.integers(1, 50), st.integers(1, 50))
def test_a_perceptron_costs_its_matrices(hidden, features, classes):
    options = {"hidden": hidden, "features": features, "num_classes": classes}
    sizes = [features, *hidden, classes]
    matrices = [a * b for a, b in pairwise(sizes)]

    total = cost(load_workload("mlp", options))

    assert total.macs == sum(matrices)
    assert total.backward_flops == 2 * (2 * sum(matrices) - matrices[0])


def test_a_convolution_by_hand():
    net = GraphBuilder("net", Input(kind="image", shape=(4, 8, 8), classes=6))
    x = net.conv2d("first", INPUT, filters=6, kernel=3, stride=2, padding=1, groups=2)
    x = net.conv2d("second", x, filters=6, kernel=1)
    net.loss(net.global_avg_pool("pool", x))

    _, first, second, pool = cost(net.build(Sgd(learning_rate=0.1))).layers

    assert first.forward_flops == 2 * 6 * 4 * 4 * (2 * 3 * 3)
    assert first.backward_flops == first.forward_flops
    assert second.backward_flops == 2 * second.forward_flops
    assert second.activation_bytes == 4 * 6 * 4 * 4
    assert (pool.forward_flops, pool.parameters, pool.gradient_bytes) == (0, 0, 0)


def test_flattening_first_does_not_ask_for_a_gradient_of_the_input():
    net = GraphBuilder("net", Input(kind="image", shape=(1, 2, 2), classes=3))
    net.loss(net.linear("head", net.flatten("flatten", INPUT), features=3))

    assert cost(net.build(Sgd(learning_rate=0.1))).backward_flops == 2 * 4 * 3


def test_attention_by_hand():
    steps, width = 5, 6
    net = GraphBuilder("net", Input(kind="tokens", shape=(steps,), classes=width, vocabulary=9))
    x = net.embedding("embedding", INPUT, features=width)
    net.loss(net.mean_over_time("mean", net.attention("attention", x, heads=2, causal=True)))

    part = cost(net.build(Sgd(learning_rate=0.1))).layers[2]

    assert part.forward_flops == 2 * (4 * steps * width * width + 2 * steps * steps * width)
    assert part.backward_flops == 2 * part.forward_flops


def test_lstm_by_hand():
    graph = load_workload("lstm", {"embedding": 5, "hidden": 7, "layers": 1, "sequence_length": 3})

    part = cost(graph).layers[2]

    assert part.kind == "lstm"
    assert part.forward_flops == 2 * 3 * 4 * 7 * (5 + 7)
