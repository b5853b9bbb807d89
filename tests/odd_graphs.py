"""Small graphs of awkward shapes that together have every layer kind: odd sizes, unequal strides, shared inputs."""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd

RULE = Sgd(learning_rate=0.1)


def image(name: str, shape: tuple[int, int, int]) -> GraphBuilder:
    return GraphBuilder(name, Input(kind="image", shape=shape, classes=3))


def headed(net: GraphBuilder, x: str) -> Graph:
    """With a head that weighs every element of `x` differently, so that each has a gradient of its own."""
    net.loss(net.linear("head", net.flatten("flat", x), features=3))
    return net.build(RULE)


def convolutions() -> Graph:
    """Groups, a kernel that is not square, strides that leave a rest; then a bias, and padding wider than the kernel."""
    net = image("convolutions", (4, 7, 6))
    x = net.conv2d("grouped", INPUT, filters=6, kernel=(3, 2), stride=(2, 3), padding=(1, 2), groups=2, bias=False)
    x = net.conv2d("depthwise", x, filters=6, kernel=(2, 1), groups=6)
    return headed(net, net.conv2d("wide", x, filters=2, kernel=2, stride=2, padding=3))


def pools() -> Graph:
    """Sizes that do not divide, padding at unequal sides, and two pools that share an input with negative numbers."""
    net = image("pools", (2, 7, 8))
    highest = net.max_pool2d("highest", INPUT, kernel=(3, 2), stride=(2, 3), padding=(1, 1))
    mean = net.avg_pool2d("mean", INPUT, kernel=(3, 2), stride=(2, 3), padding=(1, 1))
    plain = net.max_pool2d("plain", INPUT, kernel=(2, 3), stride=(2, 3))
    joined = net.concat("joined", highest, net.conv2d("mixed", mean, filters=1, kernel=1), highest)
    both = net.concat("both", plain, net.max_pool2d("rest", net.tanh("bent", INPUT), kernel=(2, 3), stride=(2, 3)))
    averaged = net.avg_pool2d("averaged", both, kernel=(2, 1), stride=(2, 1))
    net.loss(net.linear("aside", net.flatten("flat_averaged", averaged), features=3), weight=0.3)
    return headed(net, joined)


def norms_and_sums() -> Graph:
    """A branch that is added twice, a sum of three, one written over a batch norm, and an input with several readers."""
    net = image("norms_and_sums", (3, 5, 4))
    x = net.batch_norm("norm", net.conv2d("conv", INPUT, filters=3, kernel=3, padding=1), momentum=0.3, eps=1e-3)
    y = net.relu("relu", x)
    branch = net.batch_norm("branch_norm", net.conv2d("branch", y, filters=3, kernel=1, bias=False), momentum=0.1)
    over = net.add("over", y, branch)
    three = net.add("three", over, INPUT, y)
    twice = net.add("twice", three, three)
    short = net.subsample_pad("short", net.gelu("gelu", twice), stride=(2, 3), pad_low=1, pad_high=2)
    pooled = net.global_avg_pool("pooled", over)
    net.loss(net.linear("aside", net.batch_norm("vector_norm", pooled), features=3, bias=False), weight=0.25)
    return headed(net, short)


def vectors() -> Graph:
    """Layers on vectors, and a dropout whose mask the framework draws."""
    net = GraphBuilder("vectors", Input(kind="vector", shape=(7,), classes=5))
    x = net.layer_norm("norm", net.linear("inner", INPUT, features=9), eps=1e-2)
    x = net.dropout("dropped", net.tanh("tanh", x), rate=0.3)
    net.loss(net.linear("head", x, features=5))
    return net.build(RULE)


def next_token() -> Graph:
    """A target at every position; heads in odd numbers, and an LSTM wider than its input."""
    net = GraphBuilder("next_token", Input(kind="tokens", shape=(5,), classes=7, target="next-token", vocabulary=7))
    x = net.position_embedding("position", net.embedding("embedding", INPUT, features=6))
    x = net.add("residual", x, net.attention("causal", net.layer_norm("norm", x), heads=3, causal=True))
    x = net.attention("full", net.lstm("lstm", x, hidden=8), heads=2)
    net.loss(net.linear("aside", net.gelu("gelu", x), features=7, bias=False), weight=0.5)
    net.loss(net.linear("head", net.relu("relu", x), features=7), weight=2.0)
    return net.build(RULE)


def sequence_class() -> Graph:
    """One target for a sequence: its last step and its mean over time, from one LSTM."""
    net = GraphBuilder("sequence_class", Input(kind="tokens", shape=(4,), classes=3, vocabulary=6))
    x = net.lstm("lstm", net.embedding("embedding", INPUT, features=3), hidden=5)
    last, mean = net.last_step("last", x), net.mean_over_time("mean", x)
    net.loss(net.linear("head", net.add("sum", last, mean), features=3))
    return net.build(RULE)


GRAPHS = {
    graph.name: graph
    for graph in (convolutions(), pools(), norms_and_sums(), vectors(), next_token(), sequence_class())
}
