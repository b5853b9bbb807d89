"""Build each model of a list, compare it with its graph and its file, and take one step of it."""

import json
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd

from paceline_worker.frameworks.mxnet.builder import KINDS, Model, build_objective
from paceline_worker.graph.weights import read_weights

BATCH = 2


def batch_of(graph, draw):
    given = graph["input"]
    if given["kind"] == "tokens":
        inputs = draw.integers(given["vocabulary"], size=[BATCH] + given["shape"], dtype=np.int32)
    else:
        inputs = draw.standard_normal([BATCH] + given["shape"], dtype=np.float32)
    size = [BATCH] + (given["shape"] if given["target"] == "next-token" else [])
    targets = draw.integers(given["classes"], size=size, dtype=np.int32)
    return mx.nd.array(inputs, dtype=inputs.dtype), mx.nd.array(targets, dtype="int32")


def parameters_of(graph):
    """Numbers in all tensors that the blocks would train, without memory for them."""
    parameters = Model(graph).collect_params().values()
    return sum(int(np.prod(p.shape)) for p in parameters if p.grad_req != "null")


def look_at(files, draw):
    graph = files["graph"]
    objective, tensors = build_objective(graph, files["weights"], [mx.cpu()], BATCH)
    objective.hybridize(static_alloc=True, static_shape=True)
    stored = dict(read_weights(files["weights"]))
    named = dict(tensors.named(dict(tensors.parameters, **tensors.statistics)))
    same = set(named) == set(stored) and all(np.allclose(named[n], stored[n], rtol=1e-6, atol=0) for n in stored)
    with autograd.record():
        losses = objective(*batch_of(graph, draw))
    losses.backward()
    gradients = {name: parameter.grad().asnumpy() for name, parameter in tensors.parameters.items()}
    return {
        "weights_equal": same,
        "loss": float(losses.asnumpy().mean()),
        "gradients_finite": all(bool(np.isfinite(g).all()) for g in gradients.values()),
        "without_gradient": [name for name, g in gradients.items() if not np.any(g)],
    }


asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
draw = np.random.default_rng(0)
answer = {
    "kinds": sorted(KINDS),
    "parameters": {name: parameters_of(graph) for name, graph in asked["full"].items()},
    "small": {name: look_at(files, draw) for name, files in asked["small"].items()},
}
print(json.dumps(answer))
