"""A small LSTM language model, after Zaremba et al., "Recurrent neural network regularization", 2014.

The module owns the architecture and uses layer kinds only through the builder. With the defaults, a step of 8 samples
takes well under half a second on one core.
"""

from __future__ import annotations

from paceline.errors import SpecError
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import normal

EMBEDDING_STD = 0.5  # of the order of the hidden state, since no norm follows


def lstm(
    *,
    vocabulary: int = 1000,
    sequence_length: int = 32,
    embedding: int = 128,
    hidden: int = 128,
    layers: int = 2,
    dropout: float = 0.0,
) -> Graph:
    """Predict each next token with `layers` stacked LSTMs; dropout between layers only, not over time."""
    if layers < 1:
        raise SpecError(f"workload 'lstm': option 'layers' must be at least 1, not {layers}")
    given = Input(
        kind="tokens",
        shape=(sequence_length,),
        classes=vocabulary,
        target="next-token",
        vocabulary=vocabulary,
    )
    net = GraphBuilder("lstm", given)
    x = net.embedding("embedding", INPUT, features=embedding, init=normal(EMBEDDING_STD))
    for number in range(1, layers + 1):
        x = net.dropout(f"dropout{number}", x, rate=dropout)
        x = net.lstm(f"lstm{number}", x, hidden=hidden)
    x = net.dropout("head_dropout", x, rate=dropout)
    net.loss(net.linear("head", x, features=vocabulary))
    return net.build(Sgd(learning_rate=0.1, momentum=0.9, weight_decay=0.0))
