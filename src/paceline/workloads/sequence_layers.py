"""Layer kinds over time: embeddings, attention, recurrence. Other kinds, and the rules for all kinds, are in `layers`.

A sequence is (T, D): time, then features, without batch; the batch comes first (not time-major).
"""

from __future__ import annotations

from paceline.workloads.graph import Parameter, Shape
from paceline.workloads.layers import (
    SEQUENCE_RANK,
    ZEROS,
    Inferred,
    Init,
    glorot_uniform,
    normal,
    positive,
    scale_and_shift,
)

EMBEDDING_STD = 0.02  # GPT-2 and BERT; small, so that the norm or the first gate sees comparable tokens


def embedding(x: Shape, *, vocabulary: int, features: int) -> Inferred:
    """Row lookup: token ids (T,) to (T, features); weight [vocabulary, features]; no padding index.

    The gradient is dense (every row exchanged): some frameworks default to sparse ones, which is another
    exchange.
    """
    if len(x) != 1:
        raise ValueError(f"takes tokens (T,), not shape {x}")
    positive("vocabulary", vocabulary)
    positive("features", features)
    weight = Parameter(name="weight", shape=(vocabulary, features), init=normal(EMBEDDING_STD))
    return Inferred(shape=(x[0], features), parameters=(weight,))


def position_embedding(x: Shape) -> Inferred:
    """Add a learned vector to each position: y[t] = x[t] + weight[t]; weight [T, D]."""
    steps, size = sequence(x)
    weight = Parameter(name="weight", shape=(steps, size), init=normal(EMBEDDING_STD))
    return Inferred(shape=x, parameters=(weight,))


def layer_norm(x: Shape, *, eps: float) -> Inferred:
    """Normalise the last axis with its biased variance, then scale and shift.

    y = (x - mean) / sqrt(var + eps) * weight + bias. Frameworks part in eps: PyTorch 1e-5, Keras 1e-3, Flax
    1e-6.
    """
    if eps <= 0:
        raise ValueError(f"eps must be above 0, not {eps}")
    if len(x) not in (1, SEQUENCE_RANK):
        raise ValueError(f"takes a vector or a sequence, not shape {x}")
    return Inferred(shape=x, parameters=scale_and_shift(x[-1]))


def attention(x: Shape, *, heads: int, causal: bool) -> Inferred:  # noqa: ARG001 - a setting without a shape
    """Multi-head self-attention with its projections, and no dropout on the attention weights.

    qkv = x qkv_weight^T + qkv_bias; the rows of qkv_weight [3D, D] are all of q, then all of k, then all of
    v, and within each, head h has rows h*D/heads to (h+1)*D/heads. softmax(q k^T / sqrt(D/heads)) v for each
    head, heads joined in order, then out_weight [D, D] and out_bias. `causal`: position t sees positions 0 to
    t.
    """
    _, size = sequence(x)
    positive("heads", heads)
    if size % heads:
        raise ValueError(f"{heads} heads do not divide {size} features evenly")
    return Inferred(
        shape=x,
        parameters=(
            # Fans of one projection: q, k and v are three matrices stored as one.
            Parameter(name="qkv_weight", shape=(3 * size, size), init=glorot_uniform(size, size)),
            Parameter(name="qkv_bias", shape=(3 * size,), init=ZEROS),
            Parameter(name="out_weight", shape=(size, size), init=glorot_uniform(size, size)),
            Parameter(name="out_bias", shape=(size,), init=ZEROS),
        ),
    )


def lstm(x: Shape, *, hidden: int) -> Inferred:
    """One unidirectional LSTM layer that gives every step: (T, D) to (T, hidden); h and c start at 0.

    gates = x_t w_x^T + h w_h^T + bias, rows in the order i, f, g, o (cuDNN's and PyTorch's; Keras i, f, c, o
    is the same, older TensorFlow cells i, c, f, o are not); c = sigmoid(f)*c + sigmoid(i)*tanh(g); h =
    sigmoid(o)*tanh(c). ONE bias of 4*hidden: PyTorch and cuDNN have two, of which a builder must leave one at
    0 and untrained, or the bias learns at twice the rate. No peepholes, no projection, nothing added to the
    forget gate.
    """
    _, size = sequence(x)
    positive("hidden", hidden)
    init: Init = {"kind": "uniform", "limit": hidden**-0.5}
    return Inferred(
        shape=(x[0], hidden),
        parameters=(
            Parameter(name="w_x", shape=(4 * hidden, size), init=init),
            Parameter(name="w_h", shape=(4 * hidden, hidden), init=init),
            Parameter(name="bias", shape=(4 * hidden,), init=init),
        ),
    )


def last_step(x: Shape) -> Inferred:
    """The last time step: (T, D) to (D,)."""
    return Inferred(shape=(sequence(x)[1],))


def mean_over_time(x: Shape) -> Inferred:
    """The mean over time steps: (T, D) to (D,)."""
    return Inferred(shape=(sequence(x)[1],))


def sequence(x: Shape) -> tuple[int, int]:
    """Time steps and features; ValueError if `x` is not a sequence."""
    if len(x) != SEQUENCE_RANK:
        raise ValueError(f"takes a sequence (time, features), not shape {x}")
    return x[0], x[1]
