"""One forward and backward pass of each graph in float64, with the builder of the reference and given numbers."""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from paceline_worker.frameworks.torch.builder import build_model, build_objective, module_name, named_tensors


def pass_through(asked):
    graph, given = asked["graph"], dict(np.load(asked["given"]))
    model = build_model(graph, asked["weights"]).double()
    with torch.no_grad():
        for name, tensor in named_tensors(model, graph):
            tensor.copy_(torch.from_numpy(given[name]))
    inputs, targets = torch.from_numpy(given["input"]), torch.from_numpy(given["targets"])
    # Not overwritten by a layer that may write over its input: the input is a leaf.
    differentiable = inputs.is_floating_point()
    inputs.requires_grad_(differentiable)
    kept = {}

    def keep(name):
        def hook(_module, _inputs, output):
            # Copied at once: a later layer may write over it.
            kept["activation/" + name] = output.detach().clone().numpy()

        return hook

    for layer in graph["layers"][1:]:
        getattr(model, module_name(layer["name"])).register_forward_hook(keep(layer["name"]))
    loss = build_objective(graph)(model(inputs), targets)
    loss.backward()
    kept["loss"] = loss.detach().numpy()
    if differentiable:
        kept["gradient/input"] = inputs.grad.numpy()
    for name, tensor in named_tensors(model, graph):
        if tensor.requires_grad:
            kept["gradient/" + name] = tensor.grad.numpy()
        else:
            kept["after/" + name] = tensor.numpy()
    return kept


# As the reference does.
torch.set_num_threads(1)
torch.backends.mkldnn.enabled = False
torch.manual_seed(0)
for graph_asked in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")).values():
    np.savez(graph_asked["answer"], **pass_through(graph_asked))
print("null")
