"""GoogLeNet: Szegedy et al., "Going deeper with convolutions", 2015, table 1.

The module owns the architecture and uses layer kinds only through the builder. As in the paper, there is no batch norm
and every convolution has a bias. Two things differ from the paper: there is no local response normalisation, and the
four 3x3/2 poolings pad by 1 and round down instead of rounding up, which gives the same sizes at 224 in every
framework. The model has 6,998,552 parameters without the auxiliary heads and 13,378,280 with them, as Caffe's
bvlc_googlenet.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import HEAD_STD, normal

# A tenth of the paper's, which is for batches of 128 or more; with it, small batches diverge within ten steps.
LEARNING_RATE = 0.001
AUXILIARY_WEIGHT = 0.3  # section 5 of the paper
AUXILIARY_DROPOUT = 0.7  # section 5 of the paper

# Rows of table 1: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection.
STAGES: dict[str, dict[str, tuple[int, int, int, int, int, int]]] = {
    "3": {
        "a": (64, 96, 128, 16, 32, 32),
        "b": (128, 128, 192, 32, 96, 64),
    },
    "4": {
        "a": (192, 96, 208, 16, 48, 64),
        "b": (160, 112, 224, 24, 64, 64),
        "c": (128, 128, 256, 24, 64, 64),
        "d": (112, 144, 288, 32, 64, 64),
        "e": (256, 160, 320, 32, 128, 128),
    },
    "5": {
        "a": (256, 160, 320, 32, 128, 128),
        "b": (384, 192, 384, 48, 128, 128),
    },
}
HEADS = ("inception4a", "inception4d")  # whose outputs the auxiliary heads read


def googlenet(
    *,
    num_classes: int = 1000,
    image_size: int = 224,
    auxiliary_heads: bool = False,
    dropout: float = 0.4,
) -> Graph:
    """GoogLeNet; dropout 0 also turns off the heads' own (0.7), so that a run draws no random numbers."""
    given = Input(kind="image", shape=(3, image_size, image_size), classes=num_classes)
    net = GraphBuilder("googlenet", given)
    x = _conv(net, "conv1", INPUT, filters=64, kernel=7, stride=2)
    x = net.max_pool2d("pool1", x, kernel=3, stride=2, padding=1)
    x = _conv(net, "conv2_reduce", x, filters=64, kernel=1)
    x = _conv(net, "conv2", x, filters=192, kernel=3)
    x = net.max_pool2d("pool2", x, kernel=3, stride=2, padding=1)
    branches: list[str] = []
    for stage, modules in STAGES.items():
        for letter, widths in modules.items():
            x = _inception(net, f"inception{stage}{letter}", x, widths)
            if x in HEADS:
                branches.append(x)
        if stage != "5":
            x = net.max_pool2d(f"pool{stage}", x, kernel=3, stride=2, padding=1)
    x = net.global_avg_pool("pool5", x)
    x = net.dropout("dropout", x, rate=dropout)
    net.loss(net.linear("head", x, features=num_classes, init=normal(HEAD_STD)))
    if auxiliary_heads:
        for number, branch in enumerate(branches, start=1):
            rate = AUXILIARY_DROPOUT if dropout else 0.0
            logits = _auxiliary_head(net, f"auxiliary{number}", branch, num_classes, rate)
            net.loss(logits, weight=AUXILIARY_WEIGHT)
    return net.build(Sgd(learning_rate=LEARNING_RATE, momentum=0.9, weight_decay=2e-4))


def _conv(net: GraphBuilder, name: str, x: str, *, filters: int, kernel: int, stride: int = 1) -> str:
    x = net.conv2d(name, x, filters=filters, kernel=kernel, stride=stride, padding=kernel // 2)
    return net.relu(f"{name}_relu", x)


def _inception(net: GraphBuilder, name: str, x: str, widths: tuple[int, int, int, int, int, int]) -> str:
    width1, reduce3, width3, reduce5, width5, projection = widths
    branch1 = _conv(net, f"{name}_1x1", x, filters=width1, kernel=1)
    branch3 = _conv(net, f"{name}_3x3_reduce", x, filters=reduce3, kernel=1)
    branch3 = _conv(net, f"{name}_3x3", branch3, filters=width3, kernel=3)
    branch5 = _conv(net, f"{name}_5x5_reduce", x, filters=reduce5, kernel=1)
    branch5 = _conv(net, f"{name}_5x5", branch5, filters=width5, kernel=5)
    pooled = net.max_pool2d(f"{name}_pool", x, kernel=3, stride=1, padding=1)
    pooled = _conv(net, f"{name}_projection", pooled, filters=projection, kernel=1)
    return net.concat(name, branch1, branch3, branch5, pooled)


def _auxiliary_head(net: GraphBuilder, name: str, x: str, num_classes: int, dropout: float) -> str:
    x = net.avg_pool2d(f"{name}_pool", x, kernel=5, stride=3)
    x = _conv(net, f"{name}_conv", x, filters=128, kernel=1)
    x = net.flatten(f"{name}_flatten", x)
    x = net.linear(f"{name}_fc", x, features=1024)
    x = net.relu(f"{name}_fc_relu", x)
    x = net.dropout(f"{name}_dropout", x, rate=dropout)
    return net.linear(f"{name}_head", x, features=num_classes, init=normal(HEAD_STD))
