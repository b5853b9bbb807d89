"""PyTorch ranks that compute every layer together: attention heads and hidden units of a transformer dealt out."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional

from paceline_worker.frameworks.torch.alone import Alone, array
from paceline_worker.frameworks.torch.builder import Attention, module_name, sgd_rule
from paceline_worker.frameworks.torch.input import global_batch
from paceline_worker.frameworks.torch.phases import WITHOUT_COMMUNICATION

ELEMENTWISE = frozenset(["gelu", "relu", "tanh", "dropout"])
"""Between two linear layers these may see any share of the units."""


class Tensor(Alone):
    """DTensor: column-wise into heads and hidden units, row-wise out of them; the rest is on every rank."""

    wrapped = "DTensor"
    phases = WITHOUT_COMMUNICATION
    begins_with_last_gradient = False
    loss_over = "global"
    communication_in = ("forward", "backward")
    communication_why = "two sums over all ranks a block in each"
    seeded_by = "job"

    @staticmethod
    def part(job):
        return global_batch(job)

    def share(self):
        mesh = init_device_mesh(self.device.type, (self.job.world_size,))
        plan = {}
        for layer in self.job.graph["layers"]:
            name = module_name(layer["name"])
            if layer["kind"] == "attention":
                setattr(self.net, name, SplitAttention(getattr(self.net, name)))
                plan.update({name + part: ColwiseParallel() for part in (".q", ".k", ".v")})
                plan[name + ".out"] = RowwiseParallel()
        for inner, outer in linear_pairs(self.job.graph):
            plan[module_name(inner)] = ColwiseParallel()
            plan[module_name(outer)] = RowwiseParallel()
        parallelize_module(self.net, mesh, plan)
        dealt_out, on_all = [], []
        for parameter in self.net.parameters():
            (dealt_out if isinstance(parameter, DTensor) else on_all).append(parameter)
        # Groups, because one update takes tensors of one sort; there is no fused SGD for those that are dealt out.
        groups = [{"params": group} for group in (dealt_out, on_all)]
        self.optimizer = torch.optim.SGD(groups, foreach=True, **sgd_rule(self.job.graph))

    def trainable(self, of=lambda parameter: parameter):
        for layer in self.job.graph["layers"]:
            module = getattr(self.net, module_name(layer["name"]), None)
            for tensor in layer["parameters"]:
                if layer["kind"] == "attention":
                    parameters = module.named(tensor["name"])
                else:
                    parameters = [getattr(module, tensor["name"])]
                whole = [torch.from_numpy(array(of(parameter))) for parameter in parameters]
                yield "{}.{}".format(layer["name"], tensor["name"]), torch.cat(whole).numpy()

    def facts(self):
        held = sum((p.to_local() if isinstance(p, DTensor) else p).numel() for p in self.net.parameters())
        return {"parameters_held": held}


class SplitAttention(nn.Module):
    """The builder's attention with q, k and v apart, so that each can be dealt out by heads."""

    def __init__(self, whole: Attention):
        super().__init__()
        features = whole.out.in_features
        self.head_size = features // whole.heads
        self.causal = whole.causal
        self.out = whole.out
        rows = zip(whole.qkv.weight.detach().chunk(3), whole.qkv.bias.detach().chunk(3))
        for name, (weight, bias) in zip("qkv", rows):
            linear = nn.Linear(features, features, device="meta")
            linear.weight, linear.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
            setattr(self, name, linear)

    def named(self, tensor):
        """The parameters that the graph's tensor is made of, in its order."""
        owner, attribute = tensor.split("_")
        return [getattr(part, attribute) for part in ((self.q, self.k, self.v) if owner == "qkv" else (self.out,))]

    def forward(self, x):
        # As many heads as this rank has.
        q, k, v = (part(x).unflatten(-1, (-1, self.head_size)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


def linear_pairs(graph):
    """Pairs of linear layers with nothing between them but what acts on each unit by itself."""
    readers = {}
    for layer in graph["layers"]:
        for source in layer["inputs"]:
            readers.setdefault(source, []).append(layer)
    taken = {loss["logits"] for loss in graph["losses"]}
    for layer in graph["layers"]:
        if layer["kind"] != "linear" or layer["name"] in taken:
            continue
        after = readers.get(layer["name"], [])
        while len(after) == 1 and after[0]["kind"] in ELEMENTWISE:
            after = readers.get(after[0]["name"], [])
        if len(after) == 1 and after[0]["kind"] == "linear":
            taken.add(after[0]["name"])
            yield layer["name"], after[0]["name"]
