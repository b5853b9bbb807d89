"""The neutral graph as a Gluon HybridBlock of native layers, and its SGD. Knows no trainer's loop, no store.

Images are channels-first: Gluon's layout, out of which oneDNN makes its own blocked one. Every layer is a child of the
layer's own name. Hybridized, the loop over layers is gone once it is traced.
"""

import math

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn, rnn

from paceline_worker.frameworks.mxnet.blocks import (
    Add,
    Attention,
    Concat,
    GlobalAvgPool,
    LastStep,
    MeanOverTime,
    PositionEmbedding,
    SubsamplePad,
)
from paceline_worker.graph.weights import read_weights

TENSOR_NAMES = {
    "batch_norm": {"weight": "gamma", "bias": "beta"},
    "layer_norm": {"weight": "gamma", "bias": "beta"},
    "attention": {
        "qkv_weight": "qkv.weight",
        "qkv_bias": "qkv.bias",
        "out_weight": "out.weight",
        "out_bias": "out.bias",
    },
    "lstm": {"w_x": "l0_i2h_weight", "w_h": "l0_h2h_weight", "bias": "l0_i2h_bias"},
}
"""Where Gluon's name of a tensor is not the graph's."""


def _conv2d(layer, **named):
    a = layer["attributes"]
    return nn.Conv2D(
        a["filters"],
        tuple(a["kernel"]),
        tuple(a["stride"]),
        tuple(a["padding"]),
        groups=a["groups"],
        use_bias=a["bias"],
        in_channels=layer["input_shapes"][0][0],
        **named,
    )


def _batch_norm(layer, **named):
    a = layer["attributes"]
    # What Gluon calls momentum is how much of the old is kept.
    return nn.BatchNorm(momentum=1 - a["momentum"], epsilon=a["eps"], in_channels=layer["shape"][0], **named)


def _pool(kind):
    def make(layer, **named):
        a = layer["attributes"]
        return kind(tuple(a["kernel"]), tuple(a["stride"]), tuple(a["padding"]), **named)

    return make


def _linear(layer, **named):
    a = layer["attributes"]
    return nn.Dense(a["features"], use_bias=a["bias"], flatten=False, in_units=layer["input_shapes"][0][-1], **named)


def _lstm(layer, **named):
    block = rnn.LSTM(layer["attributes"]["hidden"], layout="NTC", input_size=layer["input_shapes"][0][-1], **named)
    # MXNet adds two biases; the second stays 0 and untrained, or the bias would learn twice as fast.
    block.l0_h2h_bias.grad_req = "null"
    return block


KINDS = {
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "relu": lambda _, **named: nn.Activation("relu", **named),
    "gelu": lambda _, **named: nn.GELU(**named),
    "tanh": lambda _, **named: nn.Activation("tanh", **named),
    "max_pool2d": _pool(nn.MaxPool2D),
    "avg_pool2d": _pool(nn.AvgPool2D),
    "global_avg_pool": lambda _, **named: GlobalAvgPool(**named),
    "flatten": lambda _, **named: nn.Flatten(**named),
    "linear": _linear,
    "dropout": lambda layer, **named: nn.Dropout(layer["attributes"]["rate"], **named),
    "add": lambda _, **named: Add(**named),
    "concat": lambda _, **named: Concat(**named),
    "subsample_pad": SubsamplePad,
    "embedding": lambda layer, **named: nn.Embedding(
        layer["attributes"]["vocabulary"], layer["attributes"]["features"], **named
    ),
    "position_embedding": lambda layer, **named: PositionEmbedding(layer["shape"], **named),
    "layer_norm": lambda layer, **named: nn.LayerNorm(
        epsilon=layer["attributes"]["eps"], in_channels=layer["shape"][-1], **named
    ),
    "attention": lambda layer, **named: Attention(*layer["shape"], **dict(layer["attributes"], **named)),
    "lstm": _lstm,
    "last_step": lambda _, **named: LastStep(**named),
    "mean_over_time": lambda _, **named: MeanOverTime(**named),
}
"""Kind → (the graph's layer, with `input_shapes` added; prefix) → block. The host's MXNET lists the same kinds."""


class Model(gluon.HybridBlock):
    """A batch → the logits of the loss, or of each loss if there are several."""

    def __init__(self, graph, **named):
        super(Model, self).__init__(**named)
        layers = {layer["name"]: layer for layer in graph["layers"]}
        self.layers = {}
        """Layer name → block."""
        self._calls = []
        self._input = next(name for name, layer in layers.items() if layer["kind"] == "input")
        self._logits = [loss["logits"] for loss in graph["losses"]]
        for name, layer in layers.items():
            if layer["kind"] == "input":
                continue
            seen = dict(layer, input_shapes=[layers[source]["shape"] for source in layer["inputs"]])
            block = KINDS[layer["kind"]](seen, prefix=name + "_")
            self.register_child(block, name)
            self.layers[name] = block
            self._calls.append((name, block, layer["inputs"]))

    def hybrid_forward(self, _ops, x):
        values = {self._input: x}
        for name, block, sources in self._calls:
            values[name] = block(*[values[source] for source in sources])
        logits = [values[name] for name in self._logits]
        return logits[0] if len(logits) == 1 else logits


class Objective(gluon.HybridBlock):
    """(a batch, its targets) → the loss of each sample: weight x cross-entropy, summed over the graph's losses.

    Where there is a target at each position, a sample's loss is the mean over them. Model and loss are one block, so
    that one graph is handed to the engine.
    """

    def __init__(self, graph, **named):
        super(Objective, self).__init__(**named)
        self.model = Model(graph)
        # With an axis of one behind the classes it is MXNet's own kernel that takes the logarithm: oneDNN's, of this
        # age, is wrong by 1e-5 where a prediction is good, a hundred times float32's rounding.
        classes = len(graph["input"]["shape"]) + 1 if graph["input"]["target"] == "next-token" else 1
        self._term = gluon.loss.SoftmaxCrossEntropyLoss(axis=classes)
        self._weights = [loss["weight"] for loss in graph["losses"]]

    def hybrid_forward(self, ops, x, targets):
        logits = self.model(x)
        targets = ops.expand_dims(targets, axis=-1)
        total = None
        for weight, scores in zip(self._weights, logits if isinstance(logits, (list, tuple)) else [logits]):
            term = self._term(ops.expand_dims(scores, axis=-1), targets)
            term = term if weight == 1.0 else term * weight
            total = term if total is None else total + term
        return total


class Tensors(object):
    """The graph's tensors by name, as Gluon keeps them.

    MXNet averages the biased variance where the graph asks for the unbiased one. The two differ by a factor that is
    the same in every step, and the average is linear, so the running variance is kept divided by that factor.
    """

    def __init__(self, model, graph, batch):
        self.parameters = {}
        """Tensors with a gradient: "layer.tensor" → Parameter, in the graph's order."""
        self.statistics = {}
        self._factors = {}
        for layer in graph["layers"]:
            renamed = TENSOR_NAMES.get(layer["kind"], {})
            for group, tensors in ((self.parameters, layer["parameters"]), (self.statistics, layer["buffers"])):
                for tensor in tensors:
                    value = model.layers[layer["name"]]
                    for attribute in renamed.get(tensor["name"], tensor["name"]).split("."):
                        value = getattr(value, attribute)
                    name = "{}.{}".format(layer["name"], tensor["name"])
                    group[name] = value
                    if tensor["name"] == "running_var":
                        count = batch * math.prod(layer["shape"][1:])
                        self._factors[name] = count / max(1, count - 1)

    def load(self, weights):
        """Take the file's values; on every context that the parameters were initialized on."""
        arrays = dict(read_weights(weights))
        for name, parameter in list(self.parameters.items()) + list(self.statistics.items()):
            array = arrays.pop(name)
            if tuple(array.shape) != tuple(parameter.shape):
                raise ValueError("{}: the file has {}, the layer {}".format(name, array.shape, parameter.shape))
            parameter.set_data(mx.nd.array(array / np.float32(self._factors.get(name, 1)), dtype="float32"))
        if arrays:
            raise ValueError("the graph has no tensors {}".format(", ".join(sorted(arrays))))

    def named(self, parameters):
        """Pairs ("layer.tensor", NumPy array in the graph's shape) of some of them, from the first context."""
        for name, parameter in parameters.items():
            array = parameter.list_data()[0].asnumpy()
            yield name, array * np.float32(self._factors[name]) if name in self._factors else array


def build_objective(graph, weights, contexts, batch):
    """(Objective, Tensors), with the file's weights on each of the contexts; not hybridized yet.

    Args:
        graph: the job's graph (JSON).
        weights: the job's {"path", "index"}.
        batch: samples a step of one context.
    """
    objective = Objective(graph)
    # Nothing is drawn that the file would replace at once; an LSTM's second bias starts at 0.
    objective.initialize(mx.init.Zero(), ctx=contexts)
    tensors = Tensors(objective.model, graph, batch)
    tensors.load(weights)
    return objective, tensors


def sgd_arguments(graph):
    """Arguments of MXNet's SGD that make it the graph's: v = momentum*v + (g + weight_decay*w); w = w - rate*v.

    MXNet keeps -rate*v, which is the same as long as the rate stays. Decay is on every tensor: Gluon's default.
    """
    rule = graph["optimizer"]
    if rule["kind"] != "sgd":
        raise ValueError("no optimizer {!r}".format(rule["kind"]))
    return {"learning_rate": rule["learning_rate"], "momentum": rule["momentum"], "wd": rule["weight_decay"]}
