"""A multi-layer perceptron: linear layers and ReLU.

The module owns the architecture and uses layer kinds only through the builder.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import HEAD_STD, normal


def mlp(
    *,
    hidden: tuple[int, ...] = (512, 512),
    features: int = 784,
    num_classes: int = 10,
    dropout: float = 0.0,
) -> Graph:
    """`hidden` layer sizes between `features` inputs and `num_classes`; dropout after each ReLU.

    The default is the classic MNIST perceptron of Keras' examples (669,706 parameters).
    """
    net = GraphBuilder("mlp", Input(kind="vector", shape=(features,), classes=num_classes))
    x = INPUT
    for number, size in enumerate(hidden, start=1):
        x = net.linear(f"hidden{number}", x, features=size)
        x = net.relu(f"hidden{number}_relu", x)
        x = net.dropout(f"hidden{number}_dropout", x, rate=dropout)
    net.loss(net.linear("head", x, features=num_classes, init=normal(HEAD_STD)))
    return net.build(Sgd(learning_rate=0.01, momentum=0.9, weight_decay=0.0))
