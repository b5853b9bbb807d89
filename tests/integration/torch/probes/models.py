"""Build each model of a list, compare it with its graph and its file, and take one step of it."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch

from paceline_worker.frameworks.torch.builder import KINDS, build_model, build_objective, module_name, named_tensors
from paceline_worker.graph.weights import read_weights


def trainable(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def look_at(files, batch=2):
    graph = files["graph"]
    model = build_model(graph, files["weights"])
    stored = dict(read_weights(files["weights"]))
    same = all(np.array_equal(stored[name], tensor.detach().numpy()) for name, tensor in named_tensors(model, graph))
    given = graph["input"]
    if given["kind"] == "tokens":
        inputs = torch.randint(given["vocabulary"], [batch] + given["shape"])
    else:
        inputs = torch.randn([batch] + given["shape"])
    shape = [batch] + (given["shape"] if given["target"] == "next-token" else [])
    targets = torch.randint(given["classes"], shape)
    kept = inputs.clone()
    wrong = []

    def check(layer):
        def hook(_module, _inputs, output):
            if list(output.shape[1:]) != layer["shape"]:
                wrong.append(layer["name"])

        return hook

    for layer in graph["layers"][1:]:
        getattr(model, module_name(layer["name"])).register_forward_hook(check(layer))
    loss = build_objective(graph)(model(inputs), targets)
    loss.backward()
    return {
        "parameters": trainable(model),
        "weights_equal": same,
        "loss": loss.item() if math.isfinite(loss.item()) else None,
        "without_gradient": [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None],
        "gradients_finite": all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None),
        "wrong_shapes": wrong,
        "input_untouched": bool(torch.equal(kept, inputs)),
    }


asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
torch.manual_seed(0)
torch.set_num_threads(1)
answer = {
    "kinds": sorted(KINDS),
    "full": {name: trainable(build_model(graph)) for name, graph in asked["full"].items()},
    "small": {name: look_at(files) for name, files in asked["small"].items()},
}
print(json.dumps(answer))
