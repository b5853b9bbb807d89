"""The neutral graph as a functional Keras model of native layers: one builder for all three backends.

Every layer of the graph that owns tensors is a Keras layer of the same name. Keras stores filters as height, width, in,
out, matrices as in, out, and an attention's q, k and v apart: `places` ties the graph's tensors to Keras's variables,
in both directions. Knows no backend and no trainer.

Keras's BatchNormalization keeps the biased variance in its running statistics where the graph says the unbiased one; it
is left as it is, since training does not read them.
"""

import keras
import numpy as np
from keras import layers, ops

from paceline_worker.graph.weights import read_weights

DATA_FORMATS = {"nhwc": "channels_last", "nchw": "channels_first"}
"""Layout → Keras's word for it."""

VARIABLES = {
    "conv2d": {"weight": ["kernel"], "bias": ["bias"]},
    "linear": {"weight": ["kernel"], "bias": ["bias"]},
    "batch_norm": {
        "weight": ["gamma"],
        "bias": ["beta"],
        "running_mean": ["moving_mean"],
        "running_var": ["moving_variance"],
    },
    "layer_norm": {"weight": ["gamma"], "bias": ["beta"]},
    "embedding": {"weight": ["embeddings"]},
    "position_embedding": {"weight": ["weight"]},
    "lstm": {"w_x": ["cell.kernel"], "w_h": ["cell.recurrent_kernel"], "bias": ["cell.bias"]},
    "attention": {
        "qkv_weight": ["query_dense.kernel", "key_dense.kernel", "value_dense.kernel"],
        "qkv_bias": ["query_dense.bias", "key_dense.bias", "value_dense.bias"],
        "out_weight": ["output_dense.kernel"],
        "out_bias": ["output_dense.bias"],
    },
}
"""Kind → the graph's tensor → Keras's variables, whose values are the tensor's rows one after the other."""

MATRICES = frozenset(["linear", "attention", "lstm"])
"""Kinds whose two-dimensional tensors the graph stores [out, in] and Keras [in, out]."""


class PositionEmbedding(layers.Layer):
    """Keras itself has none; this is KerasHub's, for sequences of one length."""

    def build(self, shape):
        self.weight = self.add_weight(shape=shape[1:], initializer="zeros", name="weight")

    def call(self, x):
        return x + self.weight


def _spatial(layout, pair, other):
    """Four entries, one an axis of an image, from height's and width's."""
    return [other, *pair, other] if layout == "nhwc" else [other, other, *pair]


def _padding(layer):
    """Keras's own padding where it means the graph's ("valid", "same"), else None: pad apart."""
    a = layer["attributes"]
    if not any(a["padding"]):
        return "valid"
    for size, kernel, stride, padding in zip(layer["input_shapes"][0][1:], a["kernel"], a["stride"], a["padding"]):
        total = max(0, (-(-size // stride) - 1) * stride + kernel - size)
        if total != 2 * padding:
            return None
    return "same"


def _padded(layer, layout, value):
    """A function that puts `value` around an image."""
    pads = _spatial(layout, [(p, p) for p in layer["attributes"]["padding"]], (0, 0))
    return lambda x: ops.pad(x, pads, constant_values=value)


def _after(before, then):
    return lambda x: then(before(x))


def _conv2d(layer, layout):
    a = layer["attributes"]
    own = _padding(layer)
    conv = layers.Conv2D(
        a["filters"],
        a["kernel"],
        strides=a["stride"],
        padding=own or "valid",
        groups=a["groups"],
        use_bias=a["bias"],
        data_format=DATA_FORMATS[layout],
        kernel_initializer="zeros",
        name=layer["name"],
    )
    if own:
        return conv
    around = layers.ZeroPadding2D(a["padding"], data_format=DATA_FORMATS[layout])
    return _after(around, conv)


def _pool(kind, layer, layout, own, value):
    a = layer["attributes"]
    pool = kind(
        a["kernel"], strides=a["stride"], padding=own or "valid", data_format=DATA_FORMATS[layout], name=layer["name"]
    )
    return pool if own else _after(_padded(layer, layout, value), pool)


def _max_pool2d(layer, layout):
    return _pool(layers.MaxPooling2D, layer, layout, _padding(layer), -np.inf)


def _avg_pool2d(layer, layout):
    # Never "same", which leaves the padding out of the mean.
    own = None if any(layer["attributes"]["padding"]) else "valid"
    return _pool(layers.AveragePooling2D, layer, layout, own, 0.0)


def _batch_norm(layer, layout):
    a = layer["attributes"]
    axis = 1 if layout == "nchw" and len(layer["shape"]) == 3 else -1
    return layers.BatchNormalization(axis=axis, momentum=1 - a["momentum"], epsilon=a["eps"], name=layer["name"])


def _flatten(layer, layout):
    # As it lies in memory; Keras's "channels_first" would put the channels last first.
    flat = layers.Flatten(data_format="channels_last", name=layer["name"])
    if layout == "nhwc" and len(layer["input_shapes"][0]) == 3:
        return _after(layers.Permute((3, 1, 2)), flat)
    return flat


def _linear(layer, _layout):
    a = layer["attributes"]
    return layers.Dense(a["features"], use_bias=a["bias"], kernel_initializer="zeros", name=layer["name"])


def _subsample_pad(layer, layout):
    a = layer["attributes"]
    own = tuple(slice(None, None, step) for step in _spatial(layout, a["stride"], 1))
    pads = [(0, 0)] * 4
    pads[3 if layout == "nhwc" else 1] = (a["pad_low"], a["pad_high"])
    return lambda x: ops.pad(x[own], pads)


def _embedding(layer, _layout):
    a = layer["attributes"]
    return layers.Embedding(a["vocabulary"], a["features"], embeddings_initializer="zeros", name=layer["name"])


def _attention(layer, _layout):
    a, features = layer["attributes"], layer["shape"][-1]
    attend = layers.MultiHeadAttention(
        a["heads"], features // a["heads"], kernel_initializer="zeros", name=layer["name"]
    )
    return lambda x: attend(x, x, use_causal_mask=a["causal"])


def _lstm(layer, _layout):
    return layers.LSTM(
        layer["attributes"]["hidden"],
        return_sequences=True,
        kernel_initializer="zeros",
        recurrent_initializer="zeros",
        unit_forget_bias=False,
        name=layer["name"],
    )


def _joined(kind):
    return lambda *branches: kind(list(branches))


KINDS = {
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "relu": lambda layer, _: layers.Activation("relu", name=layer["name"]),
    "gelu": lambda layer, _: layers.Activation("gelu", name=layer["name"]),
    "tanh": lambda layer, _: layers.Activation("tanh", name=layer["name"]),
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool": lambda layer, layout: layers.GlobalAveragePooling2D(
        data_format=DATA_FORMATS[layout], name=layer["name"]
    ),
    "flatten": _flatten,
    "linear": _linear,
    "dropout": lambda layer, _: layers.Dropout(layer["attributes"]["rate"], name=layer["name"]),
    "add": lambda layer, _: _joined(layers.Add(name=layer["name"])),
    "concat": lambda layer, layout: _joined(layers.Concatenate(axis=-1 if layout == "nhwc" else 1, name=layer["name"])),
    "subsample_pad": _subsample_pad,
    "embedding": _embedding,
    "position_embedding": lambda layer, _: PositionEmbedding(name=layer["name"]),
    "layer_norm": lambda layer, _: layers.LayerNormalization(epsilon=layer["attributes"]["eps"], name=layer["name"]),
    "attention": _attention,
    "lstm": _lstm,
    "last_step": lambda _, __: lambda x: x[:, -1],
    "mean_over_time": lambda layer, _: layers.GlobalAveragePooling1D(name=layer["name"]),
}
"""Kind → (the graph's layer with `input_shapes` added, layout) → function of tensors. The host lists the same kinds."""


def build_outputs(graph, layout):
    """(the input, name → output of each layer), as Keras's symbolic tensors.

    Args:
        graph: the job's graph (JSON).
        layout: a key of DATA_FORMATS; images come in so.
    """
    given = graph["input"]
    shape = list(given["shape"])
    if given["kind"] == "image" and layout == "nhwc":
        shape = shape[1:] + shape[:1]
    inputs = keras.Input(shape, dtype="int32" if given["kind"] == "tokens" else "float32", name="input")
    values = {"input": inputs}
    shapes = {layer["name"]: layer["shape"] for layer in graph["layers"]}
    for layer in graph["layers"]:
        if layer["kind"] != "input":
            full = dict(layer, input_shapes=[shapes[source] for source in layer["inputs"]])
            call = KINDS[layer["kind"]](full, layout)
            values[layer["name"]] = call(*(values[source] for source in layer["inputs"]))
    return inputs, values


def build_model(graph, weights, layout):
    """A model that maps a batch to the logits of the loss, or a list of each loss's if there are several.

    Args: weights: the job's {"path", "index"}; None: it starts at zero.
    """
    inputs, values = build_outputs(graph, layout)
    logits = [values[loss["logits"]] for loss in graph["losses"]]
    model = keras.Model(inputs, logits if len(logits) > 1 else logits[0], name=graph["name"].replace("-", "_"))
    if weights is not None:
        load_weights(model, graph, weights)
    return model


def build_objective(graph):
    """The loss as a function of (targets, what the model gives): weight x cross-entropy, summed over all losses."""
    term = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    weights = [loss["weight"] for loss in graph["losses"]]
    if weights == [1.0]:
        return term

    def weighted_sum(targets, logits):
        terms = [logits] if len(weights) == 1 else logits
        return sum(weight * term(targets, scores) for weight, scores in zip(weights, terms))

    return weighted_sum


def build_optimizer(graph):
    """Keras's SGD, and the decay that the step must add to the gradients: Keras's own `weight_decay` is another rule,
    which shrinks the weights beside the gradient and leaves it out of the velocity."""
    rule = graph["optimizer"]
    if rule["kind"] != "sgd":
        raise ValueError("no optimizer {!r}".format(rule["kind"]))
    return keras.optimizers.SGD(rule["learning_rate"], momentum=rule["momentum"]), rule["weight_decay"]


class Place(object):
    """Where a tensor of the graph lives in Keras."""

    def __init__(self, layer, tensor, variables, trainable):
        self.name = "{}.{}".format(layer["name"], tensor["name"])
        self.shape = tensor["shape"]
        self.variables = variables
        """One, or an attention's three."""
        self.trainable = trainable
        """Whether it has a gradient; statistics have none."""
        self._kind = layer["kind"]

    def as_stored(self, array):
        """The graph's array as one for each variable."""
        parts = np.split(array, len(self.variables))
        return [
            np.ascontiguousarray(self._turned(part, (2, 3, 1, 0))).reshape(tuple(variable.shape))
            for part, variable in zip(parts, self.variables)
        ]

    def as_in_graph(self, arrays):
        """The reverse of `as_stored`."""
        if self._kind in MATRICES and len(self.shape) == 2:
            rows = self.shape[0] // len(arrays)
            arrays = [array.reshape(self.shape[1], rows) for array in arrays]
        turned = [self._turned(array, (3, 2, 0, 1)) for array in arrays]
        return np.ascontiguousarray(np.concatenate(turned) if len(turned) > 1 else turned[0]).reshape(self.shape)

    def _turned(self, array, axes):
        if self._kind == "conv2d" and array.ndim == 4:
            return array.transpose(axes)
        return array.T if self._kind in MATRICES and len(self.shape) == 2 else array


def places(model, graph):
    """A Place for each tensor, in the order of the graph, parameters before statistics in each layer."""
    for layer in graph["layers"]:
        for group in ("parameters", "buffers"):
            for tensor in layer[group]:
                variables = []
                for path in VARIABLES[layer["kind"]][tensor["name"]]:
                    value = model.get_layer(layer["name"])
                    for attribute in path.split("."):
                        value = getattr(value, attribute)
                    variables.append(value)
                yield Place(layer, tensor, variables, group == "parameters")


def named_tensors(model, graph, value, trainable):
    """Pairs ("layer.tensor", NumPy array) in the order and the shapes of the graph.

    Args:
        value: variable → its value, or its gradient, as a NumPy array.
        trainable: tensors with a gradient, or those without.
    """
    for place in places(model, graph):
        if place.trainable == trainable:
            yield place.name, place.as_in_graph([value(variable) for variable in place.variables])


def load_weights(model, graph, weights):
    """Copy the file's tensors in."""
    arrays = dict(read_weights(weights))
    for place in places(model, graph):
        array = arrays.pop(place.name)
        if list(array.shape) != list(place.shape):
            raise ValueError("{}: the file has {}, the graph {}".format(place.name, array.shape, place.shape))
        for variable, part in zip(place.variables, place.as_stored(array)):
            variable.assign(part)
    if arrays:
        raise ValueError("the graph has no tensors {}".format(", ".join(sorted(arrays))))
