"""The neutral graph as functions of raw TensorFlow: variables or tensors in, logits and new statistics out.

Tensors are plain dicts, "layer.tensor" → variable (or tensor). Images run channels-last, the only layout that
TensorFlow's CPU kernels have; filters and matrices are kept as `stored` says. `tf.function` sees straight-line code:
the loop over layers is gone once it is traced. Works in a graph of TensorFlow 1 as well. Knows no trainer.
"""

import numpy as np
import tensorflow as tf


class Call(object):
    """What a layer is computed from besides its inputs."""

    def __init__(self, layer, dtype, tensors, unroll):
        self.layer = layer
        self.dtype = dtype
        self.tensors = tensors
        """The layer's own, by the graph's names."""
        self.unroll = unroll


def _cast(call, *tensors):
    return tuple(tf.cast(tensor, call.dtype) for tensor in tensors)


def _padding(a):
    """TensorFlow's word for the same zeros on both sides, where it has one: its "SAME" pads unevenly at stride 2."""
    if not any(a["padding"]):
        return "VALID"
    if list(a["stride"]) == [1, 1] and all(2 * p == k - 1 for p, k in zip(a["padding"], a["kernel"])):
        return "SAME"
    return _around(a)


def _around(a):
    return [[0, 0]] + [[p, p] for p in a["padding"]] + [[0, 0]]


def _conv2d(call, x):
    a = call.layer["attributes"]
    x, weight = _cast(call, x, call.tensors["weight"])
    if a["groups"] > 1:
        return _shifted(call, _grouped(x, weight, a))
    return _shifted(call, tf.nn.conv2d(x, weight, a["stride"], _padding(a)))


def _grouped(x, weight, a):
    """On a CPU TensorFlow has no gradients of grouped convolutions, but of the depthwise one."""
    height, width, deep, _ = weight.shape
    if deep == 1 and a["stride"][0] == a["stride"][1]:
        weight = tf.reshape(weight, [height, width, a["groups"], -1])
        padding = _padding(a)
        if not isinstance(padding, str):
            # With padding of its own, inferring shapes in the graph optimizer ended the process (seen in 2.21).
            x, padding = tf.pad(x, padding), "VALID"
        return tf.nn.depthwise_conv2d(x, weight, [1, *a["stride"], 1], padding)
    pairs = zip(tf.split(x, a["groups"], axis=-1), tf.split(weight, a["groups"], axis=-1))
    return tf.concat([tf.nn.conv2d(own, filters, a["stride"], _padding(a)) for own, filters in pairs], axis=-1)


def _linear(call, x):
    return _shifted(call, _product(x, *_cast(call, call.tensors["weight"])))


def _product(x, matrix):
    """On the last axis, as one product of two matrices: a batch of small ones would have slow gradients."""
    x = tf.cast(x, matrix.dtype)
    if len(x.shape) == 2:
        return x @ matrix
    return tf.reshape(tf.reshape(x, [-1, x.shape[-1]]) @ matrix, [*x.shape[:-1], matrix.shape[-1]])


def _shifted(call, y):
    return tf.nn.bias_add(y, tf.cast(call.tensors["bias"], y.dtype)) if "bias" in call.tensors else y


def _batch_norm(call, x):
    """Returns the new running statistics too.

    The raw operator, since its wrappers raise epsilon to 1.001e-5. It keeps the unbiased variance, and its averaging
    factor is the graph's momentum.
    """
    a, shape = call.layer["attributes"], x.shape
    if len(shape) == 2:
        x = x[:, None, None, :]
    weight, bias, mean, variance = (call.tensors[n] for n in ("weight", "bias", "running_mean", "running_var"))
    done = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=weight,
        offset=bias,
        mean=mean,
        variance=variance,
        epsilon=a["eps"],
        exponential_avg_factor=a["momentum"],
        is_training=True,
    )
    kept = {"running_mean": done.batch_mean, "running_var": done.batch_variance}
    return tf.reshape(done.y, shape), kept


def _layer_norm(call, x):
    wide = tf.cast(x, tf.float32)
    mean, variance = tf.nn.moments(wide, [-1], keepdims=True)
    y = tf.nn.batch_normalization(
        wide, mean, variance, call.tensors["bias"], call.tensors["weight"], call.layer["attributes"]["eps"]
    )
    return tf.cast(y, call.dtype)


def _max_pool2d(call, x):
    """Padded by hand: with padding of its own the operator has no oneDNN kernel, and takes three times as long."""
    a = call.layer["attributes"]
    padding = _padding(a)
    if not isinstance(padding, str):
        x, padding = tf.pad(x, padding, constant_values=x.dtype.as_numpy_dtype(-np.inf)), "VALID"
    return tf.nn.max_pool2d(x, a["kernel"], a["stride"], padding)


def _avg_pool2d(call, x):
    """Padded by hand: TensorFlow would not count the zeros."""
    a = call.layer["attributes"]
    if any(a["padding"]):
        x = tf.pad(x, _around(a))
    return tf.nn.avg_pool2d(x, a["kernel"], a["stride"], "VALID")


def _flatten(_, x):
    if len(x.shape) == 4:
        x = tf.transpose(x, [0, 3, 1, 2])
    return tf.reshape(x, [x.shape[0], -1])


def _dropout(call, x):
    rate = call.layer["attributes"]["rate"]
    return tf.nn.dropout(x, rate) if rate else x


def _subsample_pad(call, x):
    a = call.layer["attributes"]
    x = x[:, :: a["stride"][0], :: a["stride"][1], :]
    return tf.pad(x, [[0, 0]] * 3 + [[a["pad_low"], a["pad_high"]]])


def _attention(call, x):
    a = call.layer["attributes"]
    qkv_weight, qkv_bias, out_weight, out_bias = _cast(
        call, *(call.tensors[name] for name in ("qkv_weight", "qkv_bias", "out_weight", "out_bias"))
    )
    batch, steps, features = x.shape
    width = features // a["heads"]
    qkv = tf.nn.bias_add(_product(x, qkv_weight), qkv_bias)
    qkv = tf.transpose(tf.reshape(qkv, [batch, steps, 3, a["heads"], width]), [2, 0, 3, 1, 4])
    q, k, v = tf.unstack(qkv)
    scores = tf.matmul(q * width**-0.5, k, transpose_b=True)
    if a["causal"]:
        scores += tf.constant(np.triu(np.full((steps, steps), -1e9), 1), scores.dtype)
    y = tf.transpose(tf.nn.softmax(scores) @ v, [0, 2, 1, 3])
    return tf.nn.bias_add(_product(tf.reshape(y, [batch, steps, features]), out_weight), out_bias)


def _lstm(call, x):
    """The inputs' part of the gates is one product for all steps; only the recurrence has to be step by step.

    Not BlockLSTMV2, the fused operator: its gradients are not those of its outputs (seen in 2.21).
    """
    w_x, w_h, bias = _cast(call, *(call.tensors[name] for name in ("w_x", "w_h", "bias")))
    batch, steps, _ = x.shape
    given = tf.nn.bias_add(_product(tf.transpose(x, [1, 0, 2]), w_x), bias)
    zeros = tf.zeros([batch, call.layer["attributes"]["hidden"]], call.dtype)

    def advance(own, h, c):
        i, f, g, o = tf.split(own + h @ w_h, 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    if call.unroll:
        h, c, outputs = zeros, zeros, []
        for own in tf.unstack(given):
            h, c = advance(own, h, c)
            outputs.append(h)
        return tf.stack(outputs, axis=1)
    read = tf.TensorArray(call.dtype, steps).unstack(given)
    written = tf.TensorArray(call.dtype, steps, element_shape=zeros.shape)

    def body(step, h, c, written):
        h, c = advance(read.read(step), h, c)
        return step + 1, h, c, written.write(step, h)

    start = (0, zeros, zeros, written)
    *_, written = tf.while_loop(lambda step, *_: step < steps, body, start, maximum_iterations=steps)
    return tf.transpose(written.stack(), [1, 0, 2])


KINDS = {
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "relu": lambda _, x: tf.nn.relu(x),
    "gelu": lambda _, x: tf.nn.gelu(x, approximate=False),
    "tanh": lambda _, x: tf.tanh(x),
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool": lambda _, x: tf.reduce_mean(x, [1, 2]),
    "flatten": _flatten,
    "linear": _linear,
    "dropout": _dropout,
    "add": lambda _, *terms: terms[0] + terms[1] if len(terms) == 2 else tf.add_n(terms),
    "concat": lambda _, *branches: tf.concat(branches, axis=-1),
    "subsample_pad": _subsample_pad,
    "embedding": lambda call, ids: tf.cast(tf.gather(call.tensors["weight"], ids), call.dtype),
    "position_embedding": lambda call, x: x + tf.cast(call.tensors["weight"], x.dtype),
    "layer_norm": _layer_norm,
    "attention": _attention,
    "lstm": _lstm,
    "last_step": lambda _, x: x[:, -1],
    "mean_over_time": lambda _, x: tf.reduce_mean(x, 1),
}
"""Kind → (call, inputs) → output; batch_norm: (output, new statistics). The host's TENSORFLOW lists the same kinds."""


def build_layers(graph, precision="fp32", unroll=True):
    """A function of (parameters, statistics, inputs) → (name → output of each layer, new statistics).

    Args:
        graph: the job's graph (JSON).
        precision: bf16 computes in bfloat16, with norms and gradients of weights in float32.
        unroll: write an LSTM's steps one after the other instead of a loop.
    """
    dtype = tf.bfloat16 if precision == "bf16" else tf.float32
    layers = [layer for layer in graph["layers"] if layer["kind"] != "input"]

    def outputs(parameters, statistics, inputs):
        values, kept = {"input": inputs}, {}
        for layer in layers:
            name, kind = layer["name"], layer["kind"]
            tensors = {}
            for group, own in ((parameters, layer["parameters"]), (statistics, layer["buffers"])):
                tensors.update((tensor["name"], group["{}.{}".format(name, tensor["name"])]) for tensor in own)
            with tf.name_scope(name):
                call = Call(layer, dtype, tensors, unroll)
                value = KINDS[kind](call, *(values[source] for source in layer["inputs"]))
            if kind == "batch_norm":
                value, new = value
                kept.update(("{}.{}".format(name, tensor), array) for tensor, array in new.items())
            values[name] = value
        return values, kept

    return outputs


def build_objective(graph, precision="fp32", unroll=True):
    """The loss: (parameters, statistics, inputs, targets) → (weighted sum of cross-entropies, new statistics)."""
    outputs = build_layers(graph, precision, unroll)

    def cross_entropy(logits, targets):
        logits = tf.cast(logits, tf.float32)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits))

    def objective(parameters, statistics, inputs, targets):
        values, kept = outputs(parameters, statistics, inputs)
        terms = [loss["weight"] * cross_entropy(values[loss["logits"]], targets) for loss in graph["losses"]]
        return sum(terms[1:], terms[0]), kept

    return objective


def build_update(graph):
    """SGD as the graph says, in place: (variable, velocity, gradient) → the operation.

    TensorFlow's own operators, fused: v = momentum*v + g; w = w - learning_rate*v. Keras keeps learning_rate*v instead.
    """
    rule = graph["optimizer"]
    if rule["kind"] != "sgd":
        raise ValueError("no optimizer {!r}".format(rule["kind"]))
    rate, momentum, decay = (np.float32(rule[name]) for name in ("learning_rate", "momentum", "weight_decay"))

    def update(variable, velocity, gradient):
        if decay:
            gradient += decay * variable
        if not momentum:
            return tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)
        return tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle, accum=velocity.handle, lr=rate, grad=gradient, momentum=momentum
        )

    return update
