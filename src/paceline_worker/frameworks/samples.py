"""The data file of a run, memory-mapped. NumPy only: every framework reads its samples from here.

The form is the host's `paceline.datasets.synthetic`: uint8 images and vectors, int32 tokens, int32 labels or, with
target `next-token`, samples of one token more than the model reads.
"""

import json
import os

import numpy as np


class Samples(object):
    """Samples and targets by place in the file, as they are stored."""

    def __init__(self, index_path):
        with open(index_path, encoding="utf-8") as file:
            index = json.load(file)
        folder = os.path.dirname(os.path.abspath(index_path))
        self.kind = index["kind"]
        """image | tokens | vector"""
        self.count = index["samples"]
        self.normalisation = index["normalisation"]
        """{"subtract", "divide"}, or None for tokens."""
        kind = "<i4" if index["dtype"] == "int32" else index["dtype"]
        stored = np.memmap(
            os.path.join(folder, index["data"]), dtype=kind, mode="r", shape=(self.count,) + tuple(index["shape"])
        )
        if index["target"] == "next-token":
            self.inputs, self.targets = stored[:, :-1], stored[:, 1:]
        else:
            self.inputs = stored
            self.targets = np.fromfile(os.path.join(folder, index["labels"]), dtype="<i4")
