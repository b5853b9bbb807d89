"""Put a graph together layer by layer, with one method per kind.

    net = GraphBuilder("tiny", Input(kind="vector", shape=(784,), classes=10))
    x = net.linear("hidden", INPUT, features=100)
    x = net.relu("hidden_relu", x)
    net.loss(net.linear("head", x, features=10))
    graph = net.build(Sgd(learning_rate=0.1))

Each method takes the new layer's name and the name of the layer it reads, and returns the new name. Names are given,
not counted, because initial weights are drawn by name: an additional layer must not change the weights of others. This
module owns the defaults and nothing else: `layers` and `sequence_layers` define what a kind computes and which shapes
it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paceline.errors import SpecError
from paceline.workloads.graph import INPUT, Attribute, Graph, Input, Layer, LossTerm, Sgd, Shape
from paceline.workloads.kinds import check_input, check_logits, check_tokens, infer
from paceline.workloads.layers import Pair

BATCH_NORM_MOMENTUM = 0.1  # PyTorch's sense: the share of the new batch
NORM_EPS = 1e-5  # PyTorch's default and cuDNN's minimum; Keras and Flax have other defaults


class GraphBuilder:
    """Infers shapes, creates parameters, and refuses impossible layers with a SpecError that names the layer."""

    def __init__(self, name: str, given: Input) -> None:
        check_input(given)
        self._name = name
        self._input = given
        self._layers = {INPUT: Layer(name=INPUT, kind=INPUT, inputs=(), attributes={}, shape=given.shape)}
        self._losses: list[LossTerm] = []

    def shape(self, name: str) -> Shape:
        """Output shape, without batch, of a layer already added."""
        return self._layer(name).shape

    def loss(self, logits: str, *, weight: float = 1.0) -> None:
        """Add weight x cross-entropy of that layer; the first call gives the main loss."""
        check_logits(self._input, logits, self.shape(logits))
        self._losses.append(LossTerm(logits=logits, weight=float(weight)))

    def build(self, optimizer: Sgd) -> Graph:
        """The finished graph."""
        return Graph(
            name=self._name,
            input=self._input,
            layers=tuple(self._layers.values()),
            losses=tuple(self._losses),
            optimizer=optimizer,
        )

    def conv2d(
        self,
        name: str,
        x: str,
        *,
        filters: int,
        kernel: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        groups: int = 1,
        bias: bool = True,
    ) -> str:
        """See `layers.conv2d`."""
        attributes = {"filters": filters, **_window(kernel, stride, padding), "groups": groups, "bias": bias}
        return self._add("conv2d", name, (x,), attributes)

    def batch_norm(self, name: str, x: str, *, momentum: float = BATCH_NORM_MOMENTUM, eps: float = NORM_EPS) -> str:
        """See `layers.batch_norm`."""
        return self._add("batch_norm", name, (x,), {"momentum": float(momentum), "eps": float(eps)})

    def relu(self, name: str, x: str) -> str:
        """See `layers.relu`."""
        return self._add("relu", name, (x,))

    def gelu(self, name: str, x: str) -> str:
        """See `layers.gelu`."""
        return self._add("gelu", name, (x,))

    def tanh(self, name: str, x: str) -> str:
        """See `layers.tanh`."""
        return self._add("tanh", name, (x,))

    def max_pool2d(self, name: str, x: str, *, kernel: int | Pair, stride: int | Pair, padding: int | Pair = 0) -> str:
        """See `layers.max_pool2d`."""
        return self._add("max_pool2d", name, (x,), _window(kernel, stride, padding))

    def avg_pool2d(self, name: str, x: str, *, kernel: int | Pair, stride: int | Pair, padding: int | Pair = 0) -> str:
        """See `layers.avg_pool2d`."""
        return self._add("avg_pool2d", name, (x,), _window(kernel, stride, padding))

    def global_avg_pool(self, name: str, x: str) -> str:
        """See `layers.global_avg_pool`."""
        return self._add("global_avg_pool", name, (x,))

    def flatten(self, name: str, x: str) -> str:
        """See `layers.flatten`."""
        return self._add("flatten", name, (x,))

    def linear(
        self,
        name: str,
        x: str,
        *,
        features: int,
        bias: bool = True,
        init: Mapping[str, Attribute] | None = None,
    ) -> str:
        """See `layers.linear`; `init` replaces the weight's He-normal start."""
        added = self._add("linear", name, (x,), {"features": features, "bias": bias})
        return self._started(added, init)

    def dropout(self, name: str, x: str, *, rate: float) -> str:
        """See `layers.dropout`. With rate 0 no layer is added and `x` itself is returned."""
        return self._add("dropout", name, (x,), {"rate": float(rate)}) if rate else x

    def add(self, name: str, *xs: str) -> str:
        """See `layers.add`."""
        return self._add("add", name, xs)

    def concat(self, name: str, *xs: str) -> str:
        """See `layers.concat`."""
        return self._add("concat", name, xs)

    def subsample_pad(self, name: str, x: str, *, stride: int | Pair, pad_low: int, pad_high: int) -> str:
        """See `layers.subsample_pad`."""
        attributes: dict[str, Attribute] = {"stride": _pair(stride), "pad_low": pad_low, "pad_high": pad_high}
        return self._add("subsample_pad", name, (x,), attributes)

    def embedding(self, name: str, x: str, *, features: int, init: Mapping[str, Attribute] | None = None) -> str:
        """See `sequence_layers.embedding`; the vocabulary is the input's; `init` as in `linear`."""
        attributes: dict[str, Attribute] = {"vocabulary": self._input.vocabulary, "features": features}
        return self._started(self._add("embedding", name, (x,), attributes), init)

    def position_embedding(self, name: str, x: str) -> str:
        """See `sequence_layers.position_embedding`."""
        return self._add("position_embedding", name, (x,))

    def layer_norm(self, name: str, x: str, *, eps: float = NORM_EPS) -> str:
        """See `sequence_layers.layer_norm`."""
        return self._add("layer_norm", name, (x,), {"eps": float(eps)})

    def attention(self, name: str, x: str, *, heads: int, causal: bool = False) -> str:
        """See `sequence_layers.attention`."""
        return self._add("attention", name, (x,), {"heads": heads, "causal": causal})

    def lstm(self, name: str, x: str, *, hidden: int) -> str:
        """See `sequence_layers.lstm`."""
        return self._add("lstm", name, (x,), {"hidden": hidden})

    def last_step(self, name: str, x: str) -> str:
        """See `sequence_layers.last_step`."""
        return self._add("last_step", name, (x,))

    def mean_over_time(self, name: str, x: str) -> str:
        """See `sequence_layers.mean_over_time`."""
        return self._add("mean_over_time", name, (x,))

    def _add(
        self, kind: str, name: str, inputs: tuple[str, ...], attributes: Mapping[str, Attribute] | None = None
    ) -> str:
        if name in self._layers:
            raise SpecError(f"graph '{self._name}': two layers are named '{name}'")
        given = dict(attributes or {})
        inferred = infer(kind, name, [self.shape(source) for source in inputs], given)
        check_tokens(self._input, name, kind, inputs, given)
        self._layers[name] = Layer(
            name=name,
            kind=kind,
            inputs=inputs,
            attributes=given,
            parameters=inferred.parameters,
            buffers=inferred.buffers,
            shape=inferred.shape,
        )
        return name

    def _started(self, name: str, init: Mapping[str, Attribute] | None) -> str:
        """Replace the initialiser of a layer's first parameter, its weight."""
        if init is not None:
            layer = self._layers[name]
            weight = replace(layer.parameters[0], init=dict(init))
            self._layers[name] = replace(layer, parameters=(weight, *layer.parameters[1:]))
        return name

    def _layer(self, name: str) -> Layer:
        if name not in self._layers:
            raise SpecError(f"graph '{self._name}' has no layer '{name}' yet")
        return self._layers[name]


def _window(kernel: int | Pair, stride: int | Pair, padding: int | Pair) -> dict[str, Attribute]:
    return {"kernel": _pair(kernel), "stride": _pair(stride), "padding": _pair(padding)}


def _pair(value: int | Pair) -> Pair:
    return (value, value) if isinstance(value, int) else value
