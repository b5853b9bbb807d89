"""Every layer kind and the loss in NumPy, in float64: what the graph means, independent of any framework.

Written from the docstrings of `workloads/layers.py` and `workloads/sequence_layers.py` alone, as plainly as can be.
`run` passes a batch through a graph; gradients follow from it by central differences, so that no backward pass is
written that could be wrong in the same way as the one under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.workloads.graph import INPUT, Graph

Array = NDArray[Any]
Tensors = dict[str, Array]
Meaning = Callable[[Sequence[Array], Tensors, Mapping[str, Any]], Array]
"""(the inputs, with the batch as their first axis; the layer's tensors; its attributes) → the output."""

STEP = 1e-6
"""Of a central difference: truncation is then 1e-12 and rounding 1e-10 of a loss around one."""


def _windows(x: Array, attributes: Mapping[str, Any], fill: float) -> Array:
    """[batch, channel, row, column, kernel row, kernel column], with `fill` on all four sides."""
    (rows, columns), (down, right) = attributes["padding"], attributes["stride"]
    padded = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)), constant_values=fill)
    every = np.lib.stride_tricks.sliding_window_view(padded, tuple(attributes["kernel"]), axis=(2, 3))
    return every[:, :, ::down, ::right]


def _conv2d(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    windows, weight, groups = _windows(inputs[0], attributes, 0.0), tensors["weight"], attributes["groups"]
    parts = [
        np.einsum("bcrskl,fckl->bfrs", its_windows, its_weight, optimize=True)
        for its_windows, its_weight in zip(np.split(windows, groups, axis=1), np.split(weight, groups), strict=True)
    ]
    y = np.concatenate(parts, axis=1)
    return y + tensors["bias"][:, None, None] if attributes["bias"] else y


def _batch_norm(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    (x,) = inputs
    mean, variance = batch_statistics(x)
    by_channel = (slice(None), *[None] * (x.ndim - 2))
    normal = (x - mean[by_channel]) / np.sqrt(variance[by_channel] + attributes["eps"])
    return normal * tensors["weight"][by_channel] + tensors["bias"][by_channel]


def batch_statistics(x: Array) -> tuple[Array, Array]:
    """Mean and biased variance of each channel, over the batch and all positions."""
    axes = (0, *range(2, x.ndim))
    return x.mean(axes), x.var(axes)


def running_statistics(x: Array, before: Tensors, momentum: float) -> Tensors:
    """What a batch norm keeps after it has seen `x`: the mean, and the unbiased variance."""
    mean, variance = batch_statistics(x)
    count = x.size // x.shape[1]
    return {
        "running_mean": (1 - momentum) * before["running_mean"] + momentum * mean,
        "running_var": (1 - momentum) * before["running_var"] + momentum * variance * count / (count - 1),
    }


def _layer_norm(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    (x,) = inputs
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + attributes["eps"])
    return centred / deviation * tensors["weight"] + tensors["bias"]


def _linear(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    y = inputs[0] @ tensors["weight"].T
    return y + tensors["bias"] if attributes["bias"] else y


def _dropout(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    """`kept` is the mask that the framework has drawn: 1 where a unit stays, 0 where it is dropped."""
    return inputs[0] * tensors["kept"] / (1 - attributes["rate"])


def _subsample_pad(inputs: Sequence[Array], _tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    down, right = attributes["stride"]
    channels = (attributes["pad_low"], attributes["pad_high"])
    return np.pad(inputs[0][:, :, ::down, ::right], ((0, 0), channels, (0, 0), (0, 0)))


def _attention(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    (x,) = inputs
    heads, length = attributes["heads"], x.shape[1]
    q, k, v = np.split(x @ tensors["qkv_weight"].T + tensors["qkv_bias"], 3, axis=2)
    joined = []
    for its_q, its_k, its_v in zip(*(np.split(part, heads, axis=2) for part in (q, k, v)), strict=True):
        scores = its_q @ its_k.transpose(0, 2, 1) / np.sqrt(its_q.shape[2])
        if attributes["causal"]:
            scores = np.where(np.tril(np.ones((length, length), dtype=bool)), scores, -np.inf)
        shares = np.exp(scores - scores.max(2, keepdims=True))
        joined.append(shares / shares.sum(2, keepdims=True) @ its_v)
    return np.concatenate(joined, axis=2) @ tensors["out_weight"].T + tensors["out_bias"]


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _lstm(inputs: Sequence[Array], tensors: Tensors, attributes: Mapping[str, Any]) -> Array:
    (x,) = inputs
    h = c = np.zeros((len(x), attributes["hidden"]))
    steps = []
    for step in range(x.shape[1]):
        gates = x[:, step] @ tensors["w_x"].T + h @ tensors["w_h"].T + tensors["bias"]
        i, f, g, o = np.split(gates, 4, axis=1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.stack(steps, axis=1)


MEANINGS: dict[str, Meaning] = {
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "relu": lambda inputs, _tensors, _attributes: np.maximum(inputs[0], 0),
    "gelu": lambda inputs, _tensors, _attributes: inputs[0] * 0.5 * (1 + np.vectorize(erf)(inputs[0] / np.sqrt(2))),
    "tanh": lambda inputs, _tensors, _attributes: np.tanh(inputs[0]),
    "max_pool2d": lambda inputs, _tensors, attributes: _windows(inputs[0], attributes, -np.inf).max((4, 5)),
    "avg_pool2d": lambda inputs, _tensors, attributes: _windows(inputs[0], attributes, 0.0).mean((4, 5)),
    "global_avg_pool": lambda inputs, _tensors, _attributes: inputs[0].mean((2, 3)),
    "flatten": lambda inputs, _tensors, _attributes: inputs[0].reshape(len(inputs[0]), -1),
    "linear": _linear,
    "dropout": _dropout,
    "add": lambda inputs, _tensors, _attributes: np.sum(np.stack(inputs), axis=0),
    "concat": lambda inputs, _tensors, _attributes: np.concatenate(inputs, axis=1),
    "subsample_pad": _subsample_pad,
    "embedding": lambda inputs, tensors, _attributes: tensors["weight"][inputs[0]],
    "position_embedding": lambda inputs, tensors, _attributes: inputs[0] + tensors["weight"],
    "layer_norm": _layer_norm,
    "attention": _attention,
    "lstm": _lstm,
    "last_step": lambda inputs, _tensors, _attributes: inputs[0][:, -1],
    "mean_over_time": lambda inputs, _tensors, _attributes: inputs[0].mean(1),
}
"""Kind → what it means."""


def cross_entropy(logits: Array, targets: Array) -> float:
    """The mean over the batch and, where each position has a target, over positions."""
    rows, chosen = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    highest = rows.max(1, keepdims=True)
    log_sums = np.log(np.exp(rows - highest).sum(1)) + highest[:, 0]
    return float((log_sums - rows[np.arange(len(rows)), chosen]).mean())


def run(graph: Graph, tensors: Tensors, x: Array, targets: Array) -> tuple[Tensors, float]:
    """Every layer's output, and the loss: the sum of weight × cross-entropy.

    Args:
        tensors: "layer.tensor" → array; also "layer.kept", the mask, for a dropout.
    """
    values: Tensors = {INPUT: x}
    for layer in graph.layers[1:]:
        own = {name.partition(".")[2]: array for name, array in tensors.items() if name.partition(".")[0] == layer.name}
        values[layer.name] = MEANINGS[layer.kind]([values[name] for name in layer.inputs], own, layer.attributes)
    return values, sum(term.weight * cross_entropy(values[term.logits], targets) for term in graph.losses)


def gradient(loss_of: Callable[[Array], float], at: Array) -> Array:
    """Of a loss with respect to each number of an array, by central differences."""
    slopes = np.empty_like(at)
    for place in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[place] += sign * STEP
            ends.append(loss_of(moved))
        slopes[place] = (ends[0] - ends[1]) / (2 * STEP)
    return slopes
