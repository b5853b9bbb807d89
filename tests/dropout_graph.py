"""A model whose loss tells which units its dropout has kept; a study can name this file as its own model.

Every token becomes the number 1, dropout makes of it 0 or 1/(1 - rate), and the mean over time times one weight is what
the two logits differ by. With one sample a batch the loss gives that difference, hence the sum of what was kept. The
learning rate is too small to change any weight.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import ONES, normal

UNITS = 256
"""Of each sample: few enough that float32 tells one more from one less, many enough to count."""


def graph(*, rate: float = 0.5) -> Graph:
    net = GraphBuilder("dropout", Input(kind="tokens", shape=(UNITS,), classes=2, vocabulary=4))
    ones = net.embedding("ones", INPUT, features=1, init=ONES)
    share = net.mean_over_time("share", net.dropout("dropped", ones, rate=rate))
    net.loss(net.linear("head", share, features=2, bias=False, init=normal(1.0)))
    return net.build(Sgd(learning_rate=1e-30, momentum=0.0, weight_decay=0.0))
