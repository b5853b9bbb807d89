"""The list of layer kinds, and shape inference by name, which `builder` uses to build and `verify` uses to check.

`KINDS` is the complete list: a new kind is one function, one line here, one method in `builder`, one case in
`cost`, and one case in each framework's builder in the worker.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from paceline.errors import SpecError, did_you_mean
from paceline.workloads import layers, sequence_layers
from paceline.workloads.graph import INPUT, Attribute, Graph, Input, Shape
from paceline.workloads.layers import Inferred
from paceline.workloads.options import checked_options

KINDS: dict[str, Callable[..., Inferred]] = {
    "conv2d": layers.conv2d,
    "batch_norm": layers.batch_norm,
    "relu": layers.relu,
    "gelu": layers.gelu,
    "tanh": layers.tanh,
    "max_pool2d": layers.max_pool2d,
    "avg_pool2d": layers.avg_pool2d,
    "global_avg_pool": layers.global_avg_pool,
    "flatten": layers.flatten,
    "linear": layers.linear,
    "dropout": layers.dropout,
    "add": layers.add,
    "concat": layers.concat,
    "subsample_pad": layers.subsample_pad,
    "embedding": sequence_layers.embedding,
    "position_embedding": sequence_layers.position_embedding,
    "layer_norm": sequence_layers.layer_norm,
    "attention": sequence_layers.attention,
    "lstm": sequence_layers.lstm,
    "last_step": sequence_layers.last_step,
    "mean_over_time": sequence_layers.mean_over_time,
}

_INPUT_RANK = {"image": 3, "tokens": 1, "vector": 1}


def infer(kind: str, name: str, shapes: Sequence[Shape], attributes: Mapping[str, Attribute]) -> Inferred:
    """Shape and tensors of one layer.

    Raises:
        SpecError: unknown kind or attribute, wrong number of inputs, or shapes that cannot be.
    """
    if kind not in KINDS:
        raise SpecError(f"layer '{name}': unknown kind '{kind}'", hint=did_you_mean(kind, KINDS))
    function = KINDS[kind]
    where = f"layer '{name}' ({kind})"
    checked = checked_options(function, attributes, owner=where, word="attribute")
    num_inputs = _num_inputs(function)
    if num_inputs is not None and len(shapes) != num_inputs:
        raise SpecError(f"{where} takes {num_inputs} input, not {len(shapes)}")
    try:
        return function(*shapes, **checked)
    except ValueError as impossible:
        raise SpecError(f"{where}: {impossible}") from impossible


def check_input(given: Input) -> None:
    """Raise SpecError unless kind, rank, target and vocabulary belong together."""
    if given.kind not in _INPUT_RANK:
        raise SpecError(f"input kind '{given.kind}' is unknown", hint=did_you_mean(given.kind, _INPUT_RANK))
    if len(given.shape) != _INPUT_RANK[given.kind]:
        raise SpecError(f"input of kind '{given.kind}' cannot have shape {given.shape}")
    if given.classes < 1:
        raise SpecError(f"input must have at least one class, not {given.classes}")
    if (given.kind == "tokens") != (given.vocabulary > 0):
        raise SpecError(f"input '{given.kind}' has vocabulary {given.vocabulary}; only tokens have one")
    if given.target not in ("label", "next-token"):
        raise SpecError(f"target '{given.target}' is unknown", hint="known: label, next-token")
    if given.target == "next-token" and (given.kind != "tokens" or given.classes != given.vocabulary):
        raise SpecError("target 'next-token' needs tokens, and as many classes as the vocabulary")


def verify(graph: Graph) -> None:
    """Infer every layer again and raise SpecError where the graph differs from the result.

    For graphs that did not come from `GraphBuilder`, such as JSON written by hand.
    """
    check_input(graph.input)
    shapes: dict[str, Shape] = {INPUT: graph.input.shape}
    for layer in graph.layers[1:]:
        sources = [shapes[source] for source in layer.inputs]
        inferred = infer(layer.kind, layer.name, sources, layer.attributes)
        if inferred.shape != layer.shape:
            raise SpecError(f"layer '{layer.name}' ({layer.kind}) gives {inferred.shape}, not {layer.shape}")
        for listed, expected in ((layer.parameters, inferred.parameters), (layer.buffers, inferred.buffers)):
            if [(p.name, p.shape) for p in listed] != [(p.name, p.shape) for p in expected]:
                raise SpecError(f"layer '{layer.name}' ({layer.kind}) lists other tensors than its kind has")
        check_tokens(graph.input, layer.name, layer.kind, layer.inputs, layer.attributes)
        shapes[layer.name] = layer.shape
    for loss in graph.losses:
        check_logits(graph.input, loss.logits, shapes[loss.logits])


def check_tokens(
    given: Input, name: str, kind: str, inputs: Sequence[str], attributes: Mapping[str, Attribute]
) -> None:
    """Raise SpecError unless token ids go into embeddings and nothing else does."""
    if (kind == "embedding") != (given.kind == "tokens" and INPUT in inputs):
        raise SpecError(f"layer '{name}' ({kind}): only embeddings read tokens, and they read nothing else")
    if kind == "embedding" and attributes["vocabulary"] != given.vocabulary:
        raise SpecError(
            f"layer '{name}' (embedding): vocabulary {attributes['vocabulary']}, input has {given.vocabulary}"
        )


def check_logits(given: Input, name: str, shape: Shape) -> None:
    """Raise SpecError unless a loss can be taken of a layer of this shape."""
    expected = (given.classes,) if given.target == "label" else (*given.shape, given.classes)
    if shape != expected:
        raise SpecError(f"loss of '{name}': logits of shape {shape}, but {given.target} needs {expected}")


def _num_inputs(function: Callable[..., Inferred]) -> int | None:
    """Positional parameters of a kind; None where it takes any number."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    return kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
