"""The neutral layer graph: a workload as pure data, written once and read by every framework adapter.

This module owns the types, their JSON form and their identity (the hash). It must not know what a kind computes (see
`layers`), what it costs (`cost`), or any framework. The worker, a separate package, reads only the JSON:

    {"version": 1, "name": "resnet20",
     "input": {"kind": "image", "shape": [3, 32, 32], "classes": 10, "target": "label", "vocabulary": 0},
     "layers": [{"name": "stem_conv", "kind": "conv2d", "inputs": ["input"],
                 "attributes": {"filters": 16, "kernel": [3, 3], ...},
                 "parameters": [{"name": "weight", "shape": [16, 3, 3, 3],
                                 "init": {"kind": "he_normal", "fan_in": 27}, "trainable": true}],
                 "buffers": [], "shape": [16, 32, 32]}, ...],
     "losses": [{"logits": "head", "weight": 1.0}],
     "optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.0001}}

`layers` is in topological order and begins with the layer `input` of kind `input`. Shapes leave out the
batch. Attributes are int, float, bool, str or a list of int. The table of kinds is `docs/reference/graph.md`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from paceline.errors import SpecError
from paceline.workloads.options import OptionValue

VERSION = 1
HASH_DIGITS = 16  # 64 bits: no two graphs that a user ever makes will have the same hash
INPUT = "input"

Shape: TypeAlias = tuple[int, ...]
Attribute: TypeAlias = OptionValue
InputKind: TypeAlias = Literal["image", "tokens", "vector"]
Target: TypeAlias = Literal["label", "next-token"]

# Layer names become attribute, variable and scope names in frameworks, and "layer.parameter" in weight files;
# the common subset of what those accept is an identifier.
_LAYER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_GRAPH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # also a file name


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """What one sample is, and what is to be predicted from it."""

    kind: InputKind
    """`image` and `vector` are float32 after normalisation, `tokens` are integer ids."""
    shape: Shape
    """Without batch: (channels, height, width), (tokens,) or (features,)."""
    classes: int
    """Number of target classes; with target `next-token`, the vocabulary."""
    target: Target = "label"
    """`label`: one class per sample. `next-token`: at each position the token that follows it."""
    vocabulary: int = 0
    """Number of distinct token ids; 0 where the input is not tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A tensor that a layer owns: a parameter, or (in `Layer.buffers`) a running statistic."""

    name: str
    """Unique within its layer, such as `weight`."""
    shape: Shape
    """In the layout that `layers` documents, whatever a framework prefers."""
    init: Mapping[str, Attribute]
    """How the host draws its first values, `{"kind": "he_normal", "fan_in": 27}`; see `weights`."""
    trainable: bool = True
    """Whether the optimizer updates it; false for every buffer."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """One node of the graph."""

    name: str
    """Unique in the graph; an identifier."""
    kind: str
    """A key of `layers.KINDS`, or `input`."""
    inputs: tuple[str, ...]
    """Names of earlier layers, in the order the kind expects."""
    attributes: Mapping[str, Attribute]
    """The kind's own settings, complete: a reader needs no defaults."""
    parameters: tuple[Parameter, ...] = ()
    """Tensors with a gradient."""
    buffers: tuple[Parameter, ...] = ()
    """Tensors without one that training updates, such as batch-norm running statistics."""
    shape: Shape
    """Output shape without batch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LossTerm:
    """A term of the loss: weight x softmax cross-entropy, mean over the batch and, for tokens, positions."""

    logits: str
    """Name of the layer whose output are unnormalised log-probabilities, classes on the last axis."""
    weight: float = 1.0
    """Factor of this term in the sum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sgd:
    """SGD: v = momentum*v + (g + weight_decay*w); w = w - learning_rate*v; v starts at 0.

    Frameworks differ here: some put the learning rate inside the velocity (the same while it is constant), some
    decay the weights separately from the gradient, some leave biases and norms undecayed. Here every trainable
    parameter is decayed, through the gradient, and there is no dampening and no Nesterov step.
    """

    learning_rate: float
    """Constant over the run."""
    momentum: float = 0.9
    """0 is plain SGD, without a velocity."""
    weight_decay: float = 0.0
    """L2 coefficient, added to the gradient."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """A whole workload: input, layers in topological order, losses and optimizer."""

    kind: ClassVar[Literal["graph"]] = "graph"
    """Which kind of workload it is: see `workload`."""
    name: str
    """Readable; not an identity, since options change the graph and not the name. See `hash`."""
    input: Input
    """The input of the graph."""
    layers: tuple[Layer, ...]
    """Topological order; the first is the input itself."""
    losses: tuple[LossTerm, ...]
    """Summed; the first is the main one, which reports quote."""
    optimizer: Sgd
    """The update rule, part of the workload so that every framework runs the same."""

    def __post_init__(self) -> None:
        _check(self)

    def layer(self, name: str) -> Layer:
        """The layer of that name; KeyError if there is none."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise KeyError(name)

    @property
    def drops_out(self) -> bool:
        """Whether training the graph draws random numbers."""
        return any(layer.kind == "dropout" and layer.attributes["rate"] for layer in self.layers)

    def without_dropout(self) -> Graph:
        """The same graph without random numbers: layers that read a dropout layer read its input instead."""
        source: dict[str, str] = {}
        kept = []
        for layer in self.layers:
            inputs = tuple(source.get(name, name) for name in layer.inputs)
            if layer.kind == "dropout":
                source[layer.name] = inputs[0]
            else:
                kept.append(replace(layer, inputs=inputs))
        losses = tuple(replace(loss, logits=source.get(loss.logits, loss.logits)) for loss in self.losses)
        return replace(self, layers=tuple(kept), losses=losses)

    def tensors(self) -> Iterator[tuple[str, Parameter]]:
        """Every parameter and buffer as ("layer.name", tensor), in graph order, parameters before buffers."""
        for layer in self.layers:
            for tensor in (*layer.parameters, *layer.buffers):
                yield f"{layer.name}.{tensor.name}", tensor

    @property
    def layer_kinds(self) -> frozenset[str]:
        """Kinds of layers that a framework needs to build it."""
        return frozenset(layer.kind for layer in self.layers)

    @property
    def num_parameters(self) -> int:
        """Elements of all parameters, trainable or not; buffers are not counted."""
        return sum(parameter.size for layer in self.layers for parameter in layer.parameters)

    @property
    def hash(self) -> str:
        """Identity: the first digits of the SHA-256 of the JSON with sorted keys and no spaces, in ASCII."""
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:HASH_DIGITS]

    def to_json(self) -> dict[str, object]:
        """The form the worker reads, of dict, list, str, int, float and bool only."""
        return {
            "version": VERSION,
            "name": self.name,
            "input": {
                "kind": self.input.kind,
                "shape": list(self.input.shape),
                "classes": self.input.classes,
                "target": self.input.target,
                "vocabulary": self.input.vocabulary,
            },
            "layers": [_layer_to_json(layer) for layer in self.layers],
            "losses": [{"logits": loss.logits, "weight": float(loss.weight)} for loss in self.losses],
            "optimizer": {
                "kind": "sgd",
                "learning_rate": float(self.optimizer.learning_rate),
                "momentum": float(self.optimizer.momentum),
                "weight_decay": float(self.optimizer.weight_decay),
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Graph:
        """Read what `to_json` wrote.

        Raises:
            SpecError: another version, a missing key, or a graph that is not one.
        """
        if data.get("version") != VERSION:
            raise SpecError(
                f"graph JSON has version {data.get('version')!r}; this Paceline reads version {VERSION}",
                hint="write it again with this version: Graph.to_json()",
            )
        try:
            return cls(
                name=data["name"],
                input=Input(**{**data["input"], "shape": tuple(data["input"]["shape"])}),
                layers=tuple(_layer_from_json(layer) for layer in data["layers"]),
                losses=tuple(LossTerm(**loss) for loss in data["losses"]),
                optimizer=_optimizer_from_json(data["optimizer"]),
            )
        except KeyError as missing:
            raise SpecError(f"graph JSON lacks the key {missing}") from missing
        except TypeError as mismatch:
            raise SpecError(f"graph JSON is malformed: {mismatch}") from mismatch


def _layer_to_json(layer: Layer) -> dict[str, object]:
    return {
        "name": layer.name,
        "kind": layer.kind,
        "inputs": list(layer.inputs),
        "attributes": _thaw(layer.attributes),
        "parameters": [_tensor_to_json(parameter) for parameter in layer.parameters],
        "buffers": [_tensor_to_json(buffer) for buffer in layer.buffers],
        "shape": list(layer.shape),
    }


def _layer_from_json(data: Mapping[str, Any]) -> Layer:
    return Layer(
        name=data["name"],
        kind=data["kind"],
        inputs=tuple(data["inputs"]),
        attributes=_freeze(data["attributes"]),
        parameters=tuple(_tensor_from_json(parameter) for parameter in data["parameters"]),
        buffers=tuple(_tensor_from_json(buffer) for buffer in data["buffers"]),
        shape=tuple(data["shape"]),
    )


def _tensor_to_json(tensor: Parameter) -> dict[str, object]:
    init = _thaw(tensor.init)
    return {"name": tensor.name, "shape": list(tensor.shape), "init": init, "trainable": tensor.trainable}


def _tensor_from_json(data: Mapping[str, Any]) -> Parameter:
    init = _freeze(data["init"])
    return Parameter(name=data["name"], shape=tuple(data["shape"]), init=init, trainable=data["trainable"])


def _optimizer_from_json(data: Mapping[str, Any]) -> Sgd:
    if data["kind"] != "sgd":
        raise SpecError(f"graph JSON has optimizer {data['kind']!r}; the only one is 'sgd'")
    return Sgd(**{key: value for key, value in data.items() if key != "kind"})


def _thaw(values: Mapping[str, Attribute]) -> dict[str, object]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _freeze(values: Mapping[str, Any]) -> dict[str, Attribute]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _check(graph: Graph) -> None:
    """Raise SpecError unless names are valid and unique, and every layer reads only earlier layers."""
    if not _GRAPH_NAME.fullmatch(graph.name):
        raise SpecError(f"graph name {graph.name!r} must be letters, digits, '_' and '-'")
    if not graph.layers or (graph.layers[0].kind, graph.layers[0].name) != (INPUT, INPUT):
        raise SpecError(f"graph '{graph.name}': the first layer must be 'input' of kind 'input'")
    _check_positive(graph.input.shape, f"graph '{graph.name}': input")
    seen: set[str] = set()
    for layer in graph.layers:
        if not _LAYER_NAME.fullmatch(layer.name):
            raise SpecError(f"layer name {layer.name!r} must be a letter, then letters, digits and '_'")
        if layer.name in seen:
            raise SpecError(f"graph '{graph.name}': two layers are named '{layer.name}'")
        for source in layer.inputs:
            if source not in seen:
                raise SpecError(f"layer '{layer.name}' reads '{source}', which is not an earlier layer")
        _check_positive(layer.shape, f"layer '{layer.name}'")
        seen.add(layer.name)
    if not graph.losses:
        raise SpecError(f"graph '{graph.name}' has no loss", hint="add one: builder.loss(logits)")
    for loss in graph.losses:
        if loss.logits not in seen:
            raise SpecError(f"graph '{graph.name}': loss reads '{loss.logits}', which is not a layer")


def _check_positive(shape: Sequence[int], owner: str) -> None:
    if not shape or any(type(size) is not int or size < 1 for size in shape):
        raise SpecError(f"{owner}: shape {tuple(shape)} must be positive integers")
