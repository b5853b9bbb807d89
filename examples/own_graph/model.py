"""My own model: a small convolutional network, built from Paceline's layer kinds.

paceline run study.toml            trains it in every framework of the study, each with its own native layers
python model.py                    prints its layers
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd


def graph(*, width: int = 16, blocks: int = 2, num_classes: int = 10) -> Graph:
    """Build `blocks` of convolution, batch norm and ReLU, each twice as wide and half as large as the one before."""
    net = GraphBuilder("own_cnn", Input(kind="image", shape=(3, 32, 32), classes=num_classes))
    x = INPUT
    for number in range(blocks):
        x = net.conv2d(f"conv{number}", x, filters=width * 2**number, kernel=(3, 3), padding=(1, 1), bias=False)
        x = net.batch_norm(f"norm{number}", x)
        x = net.relu(f"relu{number}", x)
        x = net.max_pool2d(f"pool{number}", x, kernel=(2, 2), stride=(2, 2))
    x = net.global_avg_pool("pool", x)
    net.loss(net.linear("head", x, features=num_classes))
    return net.build(Sgd(learning_rate=0.05, momentum=0.9, weight_decay=1e-4))


if __name__ == "__main__":
    for layer in graph().layers:
        print(f"{layer.name:<8} {layer.kind:<16} {layer.shape}")
