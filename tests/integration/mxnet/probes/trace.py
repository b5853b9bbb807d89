"""Take a few steps of each graph on the first samples and keep all that passes: activations, gradients, tensors."""

import json
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from paceline_worker.frameworks.mxnet.builder import build_objective, sgd_arguments
from paceline_worker.frameworks.mxnet.input import as_numbers
from paceline_worker.frameworks.samples import Samples

STEPS = 3


def trace(files, batch):
    graph = files["graph"]
    objective, tensors = build_objective(graph, files["weights"], [mx.cpu()], batch)
    trainer = gluon.Trainer(list(tensors.parameters.values()), "sgd", sgd_arguments(graph), kvstore=None)
    samples = Samples(files["data"])
    inputs = as_numbers(np.array(samples.inputs[:batch]), samples.normalisation)
    targets = np.array(samples.targets[:batch], np.int32)
    kept = {"input": inputs, "targets": targets}
    given = mx.nd.array(inputs, dtype=inputs.dtype), mx.nd.array(targets, dtype="int32")

    def keep(name):
        return lambda _block, _inputs, output: kept.setdefault("activation/" + name, output.asnumpy())

    # Hooks are heard while the block runs as Python, and what it does then is what it does hybridized.
    hooks = [block.register_forward_hook(keep(name)) for name, block in objective.model.layers.items()]
    with autograd.train_mode():
        objective(*given)
    for hook in hooks:
        hook.detach()
    objective.hybridize(static_alloc=True, static_shape=True)
    every = dict(tensors.parameters, **tensors.statistics)
    for step in range(STEPS):
        kept.update((f"before{step}/{name}", array) for name, array in tensors.named(every))
        with autograd.record():
            losses = objective(*given)
        losses.backward()
        kept[f"loss{step}"] = losses.asnumpy().mean()
        for name, parameter in tensors.parameters.items():
            kept[f"gradient{step}/{name}"] = parameter.grad().asnumpy() / batch
        trainer.step(batch)
    kept.update((f"before{STEPS}/{name}", array) for name, array in tensors.named(every))
    return kept


asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
for files in asked.values():
    np.savez(files["answer"], **trace(files, batch=4))
print(json.dumps(sorted(asked)))
