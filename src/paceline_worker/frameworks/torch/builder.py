"""The neutral graph as a PyTorch module of native layers: for PyTorch itself, Horovod, DeepSpeed and Fabric alike.

`torch.fx` writes the forward pass as straight-line Python (`model.code` shows it), with each intermediate let go
after its last use: what a person would have written, with nothing interpreted, and `torch.compile` sees it whole.
Every layer is a submodule of the layer's own name, so that hooks can time it. Knows no trainer.
"""

import torch
from torch import fx, nn
from torch.nn import functional

from paceline_worker.graph.weights import read_weights

# What backward passes of these keep is their input or statistics, never their output, and the output is a tensor of
# its own, not a view: a sole reader may overwrite it.
OVERWRITABLE = frozenset(["conv2d", "batch_norm", "linear", "layer_norm", "add", "concat", "avg_pool2d"])

TENSOR_NAMES = {
    "attention": {
        "qkv_weight": "qkv.weight",
        "qkv_bias": "qkv.bias",
        "out_weight": "out.weight",
        "out_bias": "out.bias",
    },
    "lstm": {"w_x": "weight_ih_l0", "w_h": "weight_hh_l0", "bias": "bias_ih_l0"},
}
"""Where PyTorch's name of a tensor is not the graph's."""


class Add(nn.Module):
    def forward(self, first, *others):
        for other in others:
            first = first + other
        return first


class AddInto(nn.Module):
    """Sum written over the branch at place `into`, as torchvision's ResNets do."""

    def __init__(self, into):
        super().__init__()
        self.into = into

    def forward(self, *terms):
        total = terms[self.into]
        for place, term in enumerate(terms):
            if place != self.into:
                total += term
        return total


class Concat(nn.Module):
    def forward(self, *branches):
        return torch.cat(branches, dim=1)


class SubsamplePad(nn.Module):
    def __init__(self, stride, pad_low, pad_high):
        super().__init__()
        self.stride = stride
        self.padding = (0, 0, 0, 0, pad_low, pad_high)

    def forward(self, x):
        return functional.pad(x[:, :, :: self.stride[0], :: self.stride[1]], self.padding)


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class PositionEmbedding(nn.Module):
    def __init__(self, steps, features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(steps, features))

    def forward(self, x):
        return x + self.weight


class Attention(nn.Module):
    """Self-attention; the rows of qkv are q, k, v and within each head after head, as the graph stores them."""

    def __init__(self, features, heads, causal):
        super().__init__()
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)
        self.heads = heads
        self.causal = causal

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


class Lstm(nn.LSTM):
    """One bias: PyTorch has two that are added; the second stays 0 and untrained, or the bias learns twice as fast."""

    def __init__(self, features, hidden):
        super().__init__(features, hidden, batch_first=True)
        self.bias_hh_l0.requires_grad_(False)

    def forward(self, x):
        return super().forward(x)[0]


class LastStep(nn.Module):
    def forward(self, x):
        return x[:, -1]


class MeanOverTime(nn.Module):
    def forward(self, x):
        return x.mean(1)


def _batch_norm(layer):
    kind = nn.BatchNorm2d if len(layer["shape"]) == 3 else nn.BatchNorm1d
    attributes = layer["attributes"]
    return kind(layer["shape"][0], eps=attributes["eps"], momentum=attributes["momentum"])


def _conv2d(layer):
    a = layer["attributes"]
    return nn.Conv2d(
        layer["input_shapes"][0][0],
        a["filters"],
        tuple(a["kernel"]),
        stride=tuple(a["stride"]),
        padding=tuple(a["padding"]),
        groups=a["groups"],
        bias=a["bias"],
    )


def _window(layer):
    a = layer["attributes"]
    return {"kernel_size": tuple(a["kernel"]), "stride": tuple(a["stride"]), "padding": tuple(a["padding"])}


KINDS = {
    "conv2d": _conv2d,
    "batch_norm": _batch_norm,
    "relu": lambda _: nn.ReLU(),
    "gelu": lambda _: nn.GELU(),
    "tanh": lambda _: nn.Tanh(),
    "max_pool2d": lambda layer: nn.MaxPool2d(**_window(layer)),
    "avg_pool2d": lambda layer: nn.AvgPool2d(**_window(layer)),
    "global_avg_pool": lambda _: GlobalAvgPool(),
    "flatten": lambda _: nn.Flatten(),
    "linear": lambda layer: nn.Linear(
        layer["input_shapes"][0][-1], layer["attributes"]["features"], bias=layer["attributes"]["bias"]
    ),
    "dropout": lambda layer: nn.Dropout(layer["attributes"]["rate"]),
    "add": lambda _: Add(),
    "concat": lambda _: Concat(),
    "subsample_pad": lambda layer: SubsamplePad(**layer["attributes"]),
    "embedding": lambda layer: nn.Embedding(layer["attributes"]["vocabulary"], layer["attributes"]["features"]),
    "position_embedding": lambda layer: PositionEmbedding(*layer["shape"]),
    "layer_norm": lambda layer: nn.LayerNorm(layer["shape"][-1], eps=layer["attributes"]["eps"]),
    "attention": lambda layer: Attention(layer["shape"][-1], **layer["attributes"]),
    "lstm": lambda layer: Lstm(layer["input_shapes"][0][-1], layer["attributes"]["hidden"]),
    "last_step": lambda _: LastStep(),
    "mean_over_time": lambda _: MeanOverTime(),
}
"""Kind → (the graph's layer, with `input_shapes` added) → module. The host's TORCH lists the same kinds."""


def build_model(graph, weights=None, part=False):
    """A module in training mode that maps a batch to the logits of the loss, or of each loss if there are several.

    Args:
        graph: the job's graph (JSON).
        weights: the job's {"path", "index"}; None leaves the module on the meta device, without memory.
        part: the graph is a part of the one that the weights belong to.
    """
    layers = {layer["name"]: layer for layer in graph["layers"]}
    readers = _readers(graph)
    root = nn.Module()
    written = fx.Graph()
    values = {}
    # On the meta device nothing is drawn that the file would replace at once (seconds for VGG-16).
    with torch.device("meta"):
        for name, layer in layers.items():
            if layer["kind"] == "input":
                values[name] = written.placeholder(name)
                continue
            module = _module(layer, [layers[source] for source in layer["inputs"]], readers)
            root.add_module(module_name(name), module)
            values[name] = written.call_module(module_name(name), tuple(values[source] for source in layer["inputs"]))
    logits = tuple(values[loss["logits"]] for loss in graph["losses"])
    written.output(logits[0] if len(logits) == 1 else logits)
    model = fx.GraphModule(root, written, class_name="Model")
    if weights is not None:
        model.to_empty(device="cpu")
        load_weights(model, graph, weights, part)
    return model.train()


def module_name(layer_name):
    """Name of a layer's submodule: its own, unless every module has an attribute of that name (`type`, `half` …)."""
    taken = hasattr(fx.GraphModule, layer_name) or layer_name in ("training", "meta")
    return layer_name + "_layer" if taken else layer_name


def named_tensors(model, graph):
    """Pairs ("layer.tensor", tensor) of every parameter and buffer of the graph, in the order of the graph."""
    for layer in graph["layers"]:
        renamed = TENSOR_NAMES.get(layer["kind"], {})
        for tensor in layer["parameters"] + layer["buffers"]:
            path = renamed.get(tensor["name"], tensor["name"]).split(".")
            value = getattr(model, module_name(layer["name"]))
            for attribute in path:
                value = getattr(value, attribute)
            yield "{}.{}".format(layer["name"], tensor["name"]), value


@torch.no_grad()
def load_weights(model, graph, weights, part=False):
    """Copy the file's tensors in; what the file does not have (counters, an LSTM's second bias) starts at 0.

    Unless the graph is a `part`, every tensor of the file must find its place.
    """
    for tensor in list(model.parameters()) + list(model.buffers()):
        tensor.zero_()
    arrays = dict(read_weights(weights))
    for name, tensor in named_tensors(model, graph):
        array = arrays.pop(name)
        if list(array.shape) != list(tensor.shape):
            raise ValueError("{}: the file has {}, the layer {}".format(name, array.shape, tuple(tensor.shape)))
        # NumPy copies out of the read-only map; `from_numpy` would warn about it.
        tensor.copy_(torch.from_numpy(array.copy()))
    if arrays and not part:
        raise ValueError("the graph has no tensors {}".format(", ".join(sorted(arrays))))


def build_objective(graph):
    """The loss as a function of (logits, targets): weight x cross-entropy, summed over the graph's losses."""
    weights = [loss["weight"] for loss in graph["losses"]]

    def over_positions(logits, targets):
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    term = over_positions if graph["input"]["target"] == "next-token" else functional.cross_entropy
    if weights == [1.0]:
        return term

    def weighted_sum(logits, targets):
        terms = logits if isinstance(logits, tuple) else (logits,)
        return sum(weight * term(scores, targets) for weight, scores in zip(weights, terms))

    return weighted_sum


def sgd_rule(graph):
    """SGD as the graph says: v = momentum*v + (g + weight_decay*w); w = w - learning_rate*v."""
    rule = graph["optimizer"]
    if rule["kind"] != "sgd":
        raise ValueError("no optimizer {!r}".format(rule["kind"]))
    return {"lr": rule["learning_rate"], "momentum": rule["momentum"], "weight_decay": rule["weight_decay"]}


def build_optimizer(graph, model):
    """The graph's SGD over all trainable parameters."""
    # Fused: one pass over memory. The plain loop takes 1.26 [1.18, 1.32] of the time on AlexNet (61 M parameters,
    # batch 8); on ResNet-20, ResNet-44 and GoogLeNet the two cannot be told apart.
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], fused=True, **sgd_rule(graph))


def _module(layer, sources, readers):
    module = KINDS[layer["kind"]](dict(layer, input_shapes=[source["shape"] for source in sources]))
    may_overwrite = [source["kind"] in OVERWRITABLE and readers[source["name"]] == 1 for source in sources]
    if layer["kind"] == "relu":
        module.inplace = may_overwrite[0]
    elif layer["kind"] == "add":
        # Only over a batch norm's output: with autocast other branches differ in type, and `+` widens where `+=` cuts.
        for place, source in enumerate(sources):
            if may_overwrite[place] and source["kind"] == "batch_norm":
                return AddInto(place)
    return module


def _readers(graph):
    """How many layers and losses read each layer."""
    count = dict.fromkeys((layer["name"] for layer in graph["layers"]), 0)
    for layer in graph["layers"]:
        for source in layer["inputs"]:
            count[source] += 1
    for loss in graph["losses"]:
        count[loss["logits"]] += 1
    return count
