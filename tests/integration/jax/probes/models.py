"""Build each model of a list, compare it with its graph and its file, and take one step of those that are wanted."""

import json
import math
import sys
from pathlib import Path

import jax
import numpy as np

from paceline_worker.frameworks.jax.builder import KINDS, build_layers, build_objective
from paceline_worker.graph.stored import as_stored, load_tensors, named_tensors
from paceline_worker.graph.weights import read_weights

BATCH = 2
LAYOUT = "nhwc"


def shapes(graph):
    """Parameters and statistics of a graph as arrays without memory."""
    groups = {"parameters": {}, "buffers": {}}
    for layer in graph["layers"]:
        for group, tensors in groups.items():
            for tensor in layer[group]:
                empty = np.broadcast_to(np.float32(0), tensor["shape"])
                stored = as_stored(layer["kind"], tensor["name"], empty, LAYOUT)
                tensors["{}.{}".format(layer["name"], tensor["name"])] = jax.ShapeDtypeStruct(stored.shape, np.float32)
    return groups["parameters"], groups["buffers"]


def batch_of(graph, draw):
    given = graph["input"]
    if given["kind"] == "tokens":
        inputs = draw.integers(given["vocabulary"], size=[BATCH] + given["shape"], dtype=np.int32)
    else:
        inputs = draw.standard_normal([BATCH] + given["shape"], dtype=np.float32)
        inputs = inputs.transpose(0, 2, 3, 1) if given["kind"] == "image" else inputs
    size = [BATCH] + (given["shape"] if given["target"] == "next-token" else [])
    return inputs, draw.integers(given["classes"], size=size, dtype=np.int32)


def look_at_shapes(graph, draw):
    parameters, statistics = shapes(graph)
    inputs, targets = batch_of(graph, draw)
    narrow = jax.grad(build_objective(graph, LAYOUT, "bf16"), has_aux=True)
    gradients, _ = jax.eval_shape(narrow, parameters, statistics, inputs, targets)
    values, kept = jax.eval_shape(build_layers(graph, LAYOUT), parameters, statistics, inputs)
    wrong = [name for name, value in kept.items() if value.shape != statistics[name].shape]
    for layer in graph["layers"]:
        shape = list(values[layer["name"]].shape[1:])
        if len(shape) == 3:
            shape = [shape[2], shape[0], shape[1]]
        if shape != layer["shape"]:
            wrong.append(layer["name"])
    return {
        "parameters": sum(math.prod(p.shape) for p in parameters.values()),
        "wrong_shapes": wrong,
        "gradients_of_bf16": sorted({str(gradient.dtype) for gradient in gradients.values()}),
    }


def look_at(files, draw):
    graph = files["graph"]
    parameters, statistics = load_tensors(graph, files["weights"], LAYOUT)
    stored = dict(read_weights(files["weights"]))
    named = dict(named_tensors(graph, {**parameters, **statistics}, LAYOUT))
    seen = {
        "weights_equal": list(named) == list(stored) and all(np.array_equal(named[n], stored[n]) for n in stored),
    }
    if not files["step"]:
        return seen
    inputs, targets = batch_of(graph, draw)
    take = jax.jit(jax.value_and_grad(build_objective(graph, LAYOUT), has_aux=True))
    (loss, kept), gradients = take(parameters, statistics, inputs, targets, jax.random.PRNGKey(0))
    return {
        **seen,
        "loss": float(loss),
        "statistics_kept": set(kept) == set(statistics),
        "gradients_finite": all(bool(np.isfinite(g).all()) for g in gradients.values()),
        "without_gradient": [name for name, g in gradients.items() if not np.any(g)],
    }


# Compiled fast, run slowly: these models are tiny.
jax.config.update("jax_disable_most_optimizations", True)
asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
draw = np.random.default_rng(0)
answer = {
    "kinds": sorted(KINDS),
    "full": {name: look_at_shapes(graph, draw) for name, graph in asked["full"].items()},
    "small": {name: look_at(files, draw) for name, files in asked["small"].items()},
}
print(json.dumps(answer))
