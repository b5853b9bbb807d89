"""Small Transformers: an encoder that classifies and a decoder that predicts the next token.

The module owns the architectures and uses layer kinds only through the builder. `transformer` is BERT's encoder (Devlin
et al. 2019: norm after each residual sum, GELU) with the mean over time in place of a class token. `gpt` is GPT-2
(Radford et al. 2019: norm before each branch, one last norm), but with the exact GELU and with an output matrix that is
not tied to the embedding, so that each tensor has one owner and one gradient. With the defaults, a step of 8 samples
takes well under half a second on one core.
"""

from __future__ import annotations

from paceline.errors import SpecError
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import glorot_uniform

FEED_FORWARD = 4  # width of the inner linear layer, in multiples of the model's
OPTIMIZER = Sgd(learning_rate=0.02, momentum=0.9, weight_decay=0.0)


def transformer(
    *,
    vocabulary: int = 1000,
    sequence_length: int = 64,
    num_classes: int = 10,
    hidden: int = 128,
    layers: int = 2,
    heads: int = 4,
    dropout: float = 0.0,
) -> Graph:
    """Classify a token sequence with an encoder of width `hidden`."""
    _check_layers("transformer", layers)
    shape = (sequence_length,)
    given = Input(kind="tokens", shape=shape, classes=num_classes, vocabulary=vocabulary)
    net = GraphBuilder("transformer", given)
    x = net.embedding("embedding", INPUT, features=hidden)
    x = net.position_embedding("position", x)
    x = net.layer_norm("embedding_norm", x)
    x = net.dropout("embedding_dropout", x, rate=dropout)
    for number in range(1, layers + 1):
        name = f"block{number}"
        y = net.attention(f"{name}_attention", x, heads=heads)
        y = net.dropout(f"{name}_attention_dropout", y, rate=dropout)
        x = net.layer_norm(f"{name}_attention_norm", net.add(f"{name}_attention_add", x, y))
        y = _feed_forward(net, f"{name}_mlp", x, dropout)
        x = net.layer_norm(f"{name}_mlp_norm", net.add(f"{name}_mlp_add", x, y))
    x = net.mean_over_time("mean", x)
    net.loss(_linear(net, "head", x, num_classes))
    return net.build(OPTIMIZER)


def gpt(
    *,
    vocabulary: int = 1000,
    sequence_length: int = 64,
    hidden: int = 128,
    layers: int = 4,
    heads: int = 4,
    dropout: float = 0.0,
) -> Graph:
    """Predict each next token with a causal decoder of width `hidden`."""
    _check_layers("gpt", layers)
    given = Input(
        kind="tokens",
        shape=(sequence_length,),
        classes=vocabulary,
        target="next-token",
        vocabulary=vocabulary,
    )
    net = GraphBuilder("gpt", given)
    x = net.embedding("embedding", INPUT, features=hidden)
    x = net.position_embedding("position", x)
    x = net.dropout("embedding_dropout", x, rate=dropout)
    for number in range(1, layers + 1):
        name = f"block{number}"
        y = net.layer_norm(f"{name}_attention_norm", x)
        y = net.attention(f"{name}_attention", y, heads=heads, causal=True)
        y = net.dropout(f"{name}_attention_dropout", y, rate=dropout)
        x = net.add(f"{name}_attention_add", x, y)
        y = _feed_forward(net, f"{name}_mlp", net.layer_norm(f"{name}_mlp_norm", x), dropout)
        x = net.add(f"{name}_mlp_add", x, y)
    x = net.layer_norm("final_norm", x)
    net.loss(_linear(net, "head", x, vocabulary))
    return net.build(OPTIMIZER)


def _feed_forward(net: GraphBuilder, name: str, x: str, dropout: float) -> str:
    width = net.shape(x)[-1]
    y = _linear(net, f"{name}_in", x, FEED_FORWARD * width)
    y = net.gelu(f"{name}_gelu", y)
    y = _linear(net, f"{name}_out", y, width)
    return net.dropout(f"{name}_dropout", y, rate=dropout)


def _linear(net: GraphBuilder, name: str, x: str, features: int) -> str:
    # Glorot and not He: the inputs are normalised, and no ReLU has set half of them to zero.
    return net.linear(name, x, features=features, init=glorot_uniform(net.shape(x)[-1], features))


def _check_layers(name: str, layers: int) -> None:
    if layers < 1:
        raise SpecError(f"workload '{name}': option 'layers' must be at least 1, not {layers}")
