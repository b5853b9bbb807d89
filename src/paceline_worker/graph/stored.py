"""The graph's tensors as JAX and TensorFlow keep them, and back: filters as the layout's kernels read them, matrices
for products from the right. NumPy only.
"""

import numpy as np

from paceline_worker.graph.weights import read_weights

NHWC = "nhwc"
MATRICES = frozenset(["weight", "qkv_weight", "out_weight", "w_x", "w_h"])
"""Tensors that the graph stores [out, in] and that are multiplied from the right, [in, out]."""


def as_stored(kind, name, array, layout=NHWC):
    """A tensor of the graph as it is kept."""
    if kind == "conv2d" and name == "weight" and layout == NHWC:
        return array.transpose(2, 3, 1, 0)
    return array.T if kind in ("linear", "attention", "lstm") and name in MATRICES else array


def as_in_graph(kind, name, array, layout=NHWC):
    """The reverse of `as_stored`."""
    if kind == "conv2d" and name == "weight" and layout == NHWC:
        return array.transpose(3, 2, 0, 1)
    return array.T if kind in ("linear", "attention", "lstm") and name in MATRICES else array


def load_tensors(graph, weights, layout=NHWC):
    """(parameters, statistics): the file's tensors as NumPy arrays, stored as `layout` wants them."""
    arrays = dict(read_weights(weights))
    parameters, statistics = {}, {}
    for layer in graph["layers"]:
        for group, tensors in ((parameters, layer["parameters"]), (statistics, layer["buffers"])):
            for tensor in tensors:
                name = "{}.{}".format(layer["name"], tensor["name"])
                array = arrays.pop(name)
                if list(array.shape) != tensor["shape"]:
                    raise ValueError("{}: the file has {}, the graph {}".format(name, array.shape, tensor["shape"]))
                group[name] = np.ascontiguousarray(as_stored(layer["kind"], tensor["name"], array, layout))
    if arrays:
        raise ValueError("the graph has no tensors {}".format(", ".join(sorted(arrays))))
    return parameters, statistics


def named_tensors(graph, tensors, layout=NHWC):
    """Pairs ("layer.tensor", NumPy array) in the order and the shapes of the graph, of those that are in `tensors`."""
    for layer in graph["layers"]:
        for tensor in layer["parameters"] + layer["buffers"]:
            name = "{}.{}".format(layer["name"], tensor["name"])
            if name in tensors:
                array = as_in_graph(layer["kind"], tensor["name"], np.asarray(tensors[name]), layout)
                yield name, np.ascontiguousarray(array)
