"""Pass the first samples through each graph in training mode and keep all that passes: activations, tensors, loss."""

import json
import sys
from pathlib import Path

import keras
import numpy as np

from paceline_worker.frameworks.keras.builder import KINDS, build_objective, build_outputs, load_weights, named_tensors
from paceline_worker.frameworks.samples import Samples


def value(variable):
    return keras.ops.convert_to_numpy(variable)


def trace(files, layout, batch):
    graph = files["graph"]
    samples = Samples(files["data"])
    inputs, targets = np.array(samples.inputs[:batch]), np.array(samples.targets[:batch])
    if samples.normalisation is not None:
        inputs = ((inputs.astype(np.float32) - 127.5) / 64).astype(np.float32)
    kept = {"input": inputs, "targets": targets}
    swap = layout == "nhwc" and inputs.ndim == 4
    given, values = build_outputs(graph, layout)
    model = keras.Model(given, values)
    load_weights(model, graph, files["weights"])

    def note(when):
        for trainable in (True, False):
            kept.update((when + name, array) for name, array in named_tensors(model, graph, value, trainable))

    note("before0/")
    outputs = model(inputs.transpose(0, 2, 3, 1) if swap else inputs, training=True)
    note("before1/")
    for name, tensor in outputs.items():
        array = value(tensor)
        kept["activation/" + name] = array.transpose(0, 3, 1, 2) if swap and array.ndim == 4 else array
    (loss,) = graph["losses"]
    kept["loss0"] = value(build_objective(graph)(targets, outputs[loss["logits"]]))
    return kept


asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
for files in asked.values():
    np.savez(files["answer"], **trace(files, files["layout"], batch=4))
print(json.dumps(sorted(KINDS)))
