"""Take a few steps of each graph on the first samples and keep all that passes: activations, gradients, tensors."""

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from paceline_worker.frameworks.samples import Samples
from paceline_worker.frameworks.tensorflow.builder import KINDS, build_layers, build_objective, build_update
from paceline_worker.graph.stored import load_tensors, named_tensors

STEPS = 3


def trace(files, batch):
    graph = files["graph"]
    parameters, statistics = (
        {name: tf.Variable(array) for name, array in group.items()} for group in load_tensors(graph, files["weights"])
    )
    velocities = {name: tf.Variable(tf.zeros_like(variable)) for name, variable in parameters.items()}
    samples = Samples(files["data"])
    inputs, targets = np.array(samples.inputs[:batch]), np.array(samples.targets[:batch])
    if samples.normalisation is not None:
        inputs = ((inputs.astype(np.float32) - 127.5) / 64).astype(np.float32)
    kept = {"input": inputs, "targets": targets}
    inputs = inputs.transpose(0, 2, 3, 1) if inputs.ndim == 4 else inputs
    values, _ = tf.function(build_layers(graph, unroll=files["unroll"]), autograph=False)(
        parameters, statistics, tf.constant(inputs)
    )
    for name, value in values.items():
        kept["activation/" + name] = value.numpy().transpose(0, 3, 1, 2) if len(value.shape) == 4 else value.numpy()
    objective, update = build_objective(graph, unroll=files["unroll"]), build_update(graph)

    @tf.function(autograph=False)
    def take(inputs, targets):
        with tf.GradientTape() as tape:
            loss, new = objective(parameters, statistics, inputs, targets)
        gradients = tape.gradient(loss, parameters)
        return loss, new, {name: tf.convert_to_tensor(gradient) for name, gradient in gradients.items()}

    kept.update(("before0/" + name, tensor) for name, tensor in named_tensors(graph, parameters | statistics))
    for step in range(STEPS):
        loss, new, gradients = take(tf.constant(inputs), tf.constant(targets))
        kept[f"loss{step}"] = loss.numpy()
        kept.update((f"gradient{step}/{name}", tensor) for name, tensor in named_tensors(graph, gradients))
        for name, gradient in gradients.items():
            update(parameters[name], velocities[name], gradient)
        for name, value in new.items():
            statistics[name].assign(value)
        after = named_tensors(graph, parameters | statistics)
        kept.update((f"before{step + 1}/{name}", tensor) for name, tensor in after)
    return kept


asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
for files in asked.values():
    np.savez(files["answer"], **trace(files, batch=4))
print(json.dumps(sorted(KINDS)))
