"""Take a few steps of each graph on the first samples and keep all that passes: activations, gradients, tensors."""

import json
import sys
from pathlib import Path

import jax
import numpy as np

from paceline_worker.frameworks.jax.builder import build_layers, build_objective, build_update
from paceline_worker.frameworks.samples import Samples
from paceline_worker.graph.stored import load_tensors, named_tensors

STEPS = 3


def trace(files, layout, batch):
    graph = files["graph"]
    parameters, statistics = load_tensors(graph, files["weights"], layout)
    velocities = jax.tree.map(np.zeros_like, parameters)
    samples = Samples(files["data"])
    inputs, targets = np.array(samples.inputs[:batch]), np.array(samples.targets[:batch])
    if samples.normalisation is not None:
        inputs = ((inputs.astype(np.float32) - 127.5) / 64).astype(np.float32)
    kept = {"input": inputs, "targets": targets}
    swap = layout == "nhwc" and inputs.ndim == 4
    inputs = inputs.transpose(0, 2, 3, 1) if swap else inputs
    values, _ = jax.jit(build_layers(graph, layout))(parameters, statistics, inputs)
    for name, value in values.items():
        kept["activation/" + name] = np.asarray(value.transpose(0, 3, 1, 2) if swap and value.ndim == 4 else value)
    take = jax.jit(jax.value_and_grad(build_objective(graph, layout), has_aux=True))
    update = jax.jit(build_update(graph))
    kept.update(("before0/" + name, tensor) for name, tensor in named(graph, layout, parameters, statistics))
    for step in range(STEPS):
        (loss, statistics), gradients = take(parameters, statistics, inputs, targets)
        parameters, velocities = update(parameters, velocities, gradients)
        kept[f"loss{step}"] = np.asarray(loss)
        kept.update((f"gradient{step}/{name}", tensor) for name, tensor in named(graph, layout, gradients))
        after = named(graph, layout, parameters, statistics)
        kept.update((f"before{step + 1}/{name}", tensor) for name, tensor in after)
    return kept


def named(graph, layout, *groups):
    return named_tensors(graph, {name: tensor for group in groups for name, tensor in group.items()}, layout)


asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
for files in asked.values():
    np.savez(files["answer"], **trace(files, files["layout"], batch=4))
print(json.dumps(sorted(asked)))
