"""The neutral graph as pure functions of JAX: parameters and statistics in, logits and new statistics out.

Tensors are plain dicts, "layer.tensor" → array. Images run channels-last or channels-first as the caller says; filters
and matrices are kept as `stored` says. `jit` sees straight-line code: the loop over layers is gone once it is traced.
Knows no trainer.
"""

import operator
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LAYOUTS = ("nhwc", "nchw")


class Call(object):
    """What a layer is computed from besides its inputs."""

    def __init__(self, layer, layout, dtype, tensors, key):
        self.layer = layer
        self.layout = layout
        self.dtype = dtype
        self.tensors = tensors
        """The layer's own, by the graph's names."""
        self.key = key
        """For what is random; None: nothing is."""


def _cast(call, *arrays):
    return tuple(array.astype(call.dtype) for array in arrays)


def _channels(call, x):
    """The axis of channels."""
    return x.ndim - 1 if x.ndim < 4 or call.layout == "nhwc" else 1


def _along(axis, vector, x):
    """A vector shaped so that it lies along one axis of x."""
    return vector.reshape([-1 if place == axis else 1 for place in range(x.ndim)])


def _spatial(call, pair, other):
    """Four numbers, one an axis of an image, from height's and width's."""
    return (other, *pair, other) if call.layout == "nhwc" else (other, other, *pair)


def _conv2d(call, x):
    a, names = call.layer["attributes"], call.layout.upper()
    x, weight = _cast(call, x, call.tensors["weight"])
    y = lax.conv_general_dilated(
        x,
        weight,
        window_strides=a["stride"],
        padding=[(p, p) for p in a["padding"]],
        dimension_numbers=(names, "HWIO" if call.layout == "nhwc" else "OIHW", names),
        feature_group_count=a["groups"],
    )
    return _shifted(call, y)


def _linear(call, x):
    x, weight = _cast(call, x, call.tensors["weight"])
    return _shifted(call, x @ weight)


def _shifted(call, y):
    if "bias" not in call.tensors:
        return y
    return y + _along(_channels(call, y), call.tensors["bias"].astype(y.dtype), y)


def _batch_norm(call, x):
    """Returns the new running statistics too."""
    a, axis = call.layer["attributes"], _channels(call, x)
    others = [place for place in range(x.ndim) if place != axis]
    y, mean, variance = _normalised(call, x, others, axis)
    count = x.size // x.shape[axis]
    batch = {"running_mean": mean, "running_var": variance * (count / max(1, count - 1))}
    kept = {
        name: (1 - a["momentum"]) * call.tensors[name] + a["momentum"] * lax.stop_gradient(new).reshape(-1)
        for name, new in batch.items()
    }
    return y, kept


def _normalised(call, x, over, axis):
    """(x - mean) / sqrt(biased variance + eps) * weight + bias, mean, variance; in float32 whatever x is."""
    wide = x.astype(jnp.float32)
    mean = wide.mean(over, keepdims=True)
    # As Flax and Keras do by default: the mean of squares is taken in the same pass as the mean, and what is applied is
    # one product and one sum. With the squares of x - mean, ResNet-44's step took 1.2 to 1.4 times as long.
    variance = jnp.maximum(lax.square(wide).mean(over, keepdims=True) - lax.square(mean), 0.0)
    scale = lax.rsqrt(variance + call.layer["attributes"]["eps"]) * _along(axis, call.tensors["weight"], x)
    values = wide * scale + (_along(axis, call.tensors["bias"], x) - mean * scale)
    return values.astype(call.dtype), mean, variance


def _layer_norm(call, x):
    return _normalised(call, x, (-1,), x.ndim - 1)[0]


def _pooled(call, x, start, combine):
    a = call.layer["attributes"]
    sizes = [_spatial(call, a[name], 1) for name in ("kernel", "stride")]
    padding = _spatial(call, [(p, p) for p in a["padding"]], (0, 0))
    return lax.reduce_window(x, np.array(start, x.dtype), combine, *sizes, padding)


def _avg_pool2d(call, x):
    height, width = call.layer["attributes"]["kernel"]
    return _pooled(call, x, 0, lax.add) / (height * width)


def _global_avg_pool(call, x):
    return x.mean((1, 2) if call.layout == "nhwc" else (2, 3))


def _flatten(call, x):
    if x.ndim == 4 and call.layout == "nhwc":
        x = x.transpose(0, 3, 1, 2)
    return x.reshape(x.shape[0], -1)


def _dropout(call, x):
    """Without a key nothing is dropped."""
    rate = call.layer["attributes"]["rate"]
    if call.key is None or not rate:
        return x
    return jnp.where(jax.random.bernoulli(call.key, 1 - rate, x.shape), x / (1 - rate), 0)


def _concat(call, *branches):
    return jnp.concatenate(branches, axis=_channels(call, branches[0]))


def _subsample_pad(call, x):
    a = call.layer["attributes"]
    x = x[tuple(slice(None, None, step) for step in _spatial(call, a["stride"], 1))]
    padding = [(0, 0)] * 4
    padding[_channels(call, x)] = (a["pad_low"], a["pad_high"])
    return jnp.pad(x, padding)


def _attention(call, x):
    a = call.layer["attributes"]
    x, qkv_weight, qkv_bias, out_weight, out_bias = _cast(
        call, x, *(call.tensors[name] for name in ("qkv_weight", "qkv_bias", "out_weight", "out_bias"))
    )
    batch, steps, features = x.shape
    qkv = (x @ qkv_weight + qkv_bias).reshape(batch, steps, 3, a["heads"], features // a["heads"])
    y = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=a["causal"])
    return y.reshape(batch, steps, features) @ out_weight + out_bias


def _lstm(call, x):
    x, w_x, w_h, bias = _cast(call, x, *(call.tensors[name] for name in ("w_x", "w_h", "bias")))
    zeros = jnp.zeros((x.shape[0], call.layer["attributes"]["hidden"]), x.dtype)

    def advance(carry, given):
        h, c = carry
        i, f, g, o = jnp.split(given + h @ w_h, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    # The inputs' part of the gates is one product for all steps; only the recurrence has to be a loop.
    _, y = lax.scan(advance, (zeros, zeros), (x @ w_x + bias).transpose(1, 0, 2))
    return y.transpose(1, 0, 2)


KINDS = {
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "relu": lambda _, x: jax.nn.relu(x),
    "gelu": lambda _, x: jax.nn.gelu(x, approximate=False),
    "tanh": lambda _, x: jnp.tanh(x),
    "max_pool2d": lambda call, x: _pooled(call, x, -np.inf, lax.max),
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool": _global_avg_pool,
    "flatten": _flatten,
    "linear": _linear,
    "dropout": _dropout,
    "add": lambda _, *terms: reduce(operator.add, terms),
    "concat": _concat,
    "subsample_pad": _subsample_pad,
    "embedding": lambda call, ids: call.tensors["weight"].astype(call.dtype)[ids],
    "position_embedding": lambda call, x: x + call.tensors["weight"].astype(x.dtype),
    "layer_norm": _layer_norm,
    "attention": _attention,
    "lstm": _lstm,
    "last_step": lambda _, x: x[:, -1],
    "mean_over_time": lambda _, x: x.mean(1),
}
"""Kind → (call, inputs) → output; batch_norm: (output, new statistics). The host's JAX lists the same kinds."""


def build_layers(graph, layout, precision="fp32"):
    """A function of (parameters, statistics, inputs, key) → (name → output of each layer, new statistics).

    Args:
        graph: the job's graph (JSON).
        layout: one of LAYOUTS; images come in so.
        precision: bf16 computes in bfloat16, with norms and loss in float32; sums of gradients over samples stay in
            bfloat16, as JAX itself keeps them.

    With key None nothing is dropped out. What nobody reads, `jit` leaves out.
    """
    dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
    layers = [layer for layer in graph["layers"] if layer["kind"] != "input"]

    def outputs(parameters, statistics, inputs, key=None):
        values, kept = {"input": inputs}, {}
        for place, layer in enumerate(layers):
            name, kind = layer["name"], layer["kind"]
            tensors = {}
            for group, own in ((parameters, layer["parameters"]), (statistics, layer["buffers"])):
                tensors.update((tensor["name"], group["{}.{}".format(name, tensor["name"])]) for tensor in own)
            own_key = jax.random.fold_in(key, place) if kind == "dropout" and key is not None else None
            call = Call(layer, layout, dtype, tensors, own_key)
            value = KINDS[kind](call, *(values[source] for source in layer["inputs"]))
            if kind == "batch_norm":
                value, new = value
                kept.update(("{}.{}".format(name, tensor), array) for tensor, array in new.items())
            values[name] = value
        return values, kept

    return outputs


def build_objective(graph, layout, precision="fp32"):
    """The loss: (parameters, statistics, inputs, targets, key) → (weighted sum of cross-entropies, new statistics)."""
    outputs = build_layers(graph, layout, precision)

    def cross_entropy(logits, targets):
        chances = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.take_along_axis(chances, targets[..., None], axis=-1).mean()

    def objective(parameters, statistics, inputs, targets, key=None):
        values, kept = outputs(parameters, statistics, inputs, key)
        terms = [loss["weight"] * cross_entropy(values[loss["logits"]], targets) for loss in graph["losses"]]
        return sum(terms), kept

    return objective


def build_update(graph):
    """SGD as the graph says: (parameters, velocities, gradients) → (parameters, velocities)."""
    rule = graph["optimizer"]
    if rule["kind"] != "sgd":
        raise ValueError("no optimizer {!r}".format(rule["kind"]))
    rate, momentum, decay = rule["learning_rate"], rule["momentum"], rule["weight_decay"]

    def update(parameters, velocities, gradients):
        velocities = jax.tree.map(lambda v, g, w: momentum * v + (g + decay * w), velocities, gradients, parameters)
        return jax.tree.map(lambda w, v: w - rate * v, parameters, velocities), velocities

    return update
