"""The initial weights that the host drew, memory-mapped: the same bytes for every framework and every rank.

NumPy only; how a tensor gets into a framework is that framework's builder's business.
"""

import json

import numpy as np


def read_weights(weights):
    """Pairs ("layer.tensor", read-only array) in the order of the file.

    Args:
        weights: the job's {"path", "index"}.
    """
    with open(weights["index"], encoding="utf-8") as file:
        index = json.load(file)
    flat = np.memmap(weights["path"], dtype="<f4", mode="r")
    for tensor in index["tensors"]:
        first = tensor["offset_bytes"] // flat.itemsize
        # An empty product is 1: a scalar has one element.
        size = int(np.prod(tensor["shape"], dtype=np.int64))
        yield tensor["name"], flat[first : first + size].reshape(tensor["shape"])
