"""Take a few steps of each graph on the first samples and keep all that passes: activations, gradients, tensors."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from paceline_worker.frameworks.samples import Samples
from paceline_worker.frameworks.torch.builder import (
    build_model,
    build_objective,
    build_optimizer,
    module_name,
    named_tensors,
)

STEPS = 3


def trace(files, batch):
    graph = files["graph"]
    model = build_model(graph, files["weights"])
    objective, optimizer = build_objective(graph), build_optimizer(graph, model)
    samples = Samples(files["data"])
    inputs = torch.tensor(samples.inputs[:batch])
    inputs = inputs.long() if samples.normalisation is None else (inputs.float() - 127.5) / 64
    targets = torch.tensor(samples.targets[:batch]).long()
    kept = {"input": inputs.numpy(), "targets": targets.numpy()}

    def keep(name):
        def hook(_module, _inputs, output):
            # Copied at once: a later layer may write over it.
            kept.setdefault("activation/" + name, output.detach().clone().numpy())

        return hook

    for layer in graph["layers"][1:]:
        getattr(model, module_name(layer["name"])).register_forward_hook(keep(layer["name"]))
    for step in range(STEPS):
        for name, tensor in named_tensors(model, graph):
            kept[f"before{step}/{name}"] = tensor.detach().clone().numpy()
        loss = objective(model(inputs), targets)
        loss.backward()
        kept[f"loss{step}"] = loss.detach().numpy()
        for name, tensor in named_tensors(model, graph):
            if tensor.requires_grad:
                kept[f"gradient{step}/{name}"] = tensor.grad.clone().numpy()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    for name, tensor in named_tensors(model, graph):
        kept[f"before{STEPS}/{name}"] = tensor.detach().clone().numpy()
    kept["graph_breaks"] = np.array(graph_breaks(model, inputs))
    kept["untrained"] = np.array([p.abs().max().item() for p in model.parameters() if not p.requires_grad] or [0.0])
    return kept


def graph_breaks(model, inputs):
    """How often the compiler would have to leave the model's code; -1 where it refuses a layer (LSTM) as such."""
    if any(isinstance(module, torch.nn.LSTM) for module in model.modules()):
        return -1
    return torch._dynamo.explain(model)(inputs).graph_break_count


torch.set_num_threads(1)
asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
for files in asked.values():
    np.savez(files["answer"], **trace(files, batch=4))
print(json.dumps(sorted(asked)))
