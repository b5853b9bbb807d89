"""What a graph costs per sample, derived from the graph alone: parameters, arithmetic, bytes.

This module owns the counting; it must not know a machine or a framework. These rules make its numbers comparable:

* Counted are the multiply-accumulates (MAC) of convolutions, linear layers, LSTM gates and attention
  (projections, scores, weighted sum); 1 MAC = 2 FLOPs. Attention counts the full square of positions also
  where it is causal, since most implementations compute it.
* Not counted are biases, activations, norms, pooling, softmax, embedding lookups, the loss and the optimizer:
  they are bound by memory, not arithmetic, and `activation_bytes` is the better measure of them.
* Backward is the gradient of the weights plus the gradient of the input, each as expensive as the forward pass.
  The gradient of the input is left out where nothing before the layer has a trainable parameter (the first
  layer).
* `gradient_bytes` are the bytes that data parallelism exchanges: 4 bytes per trainable parameter, dense.
* `activation_bytes` are the bytes of the layer's output at 4 bytes per element. Values that a layer keeps inside
  (gates, scores) are not included, and in-place operations of a framework are not subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.workloads.graph import INPUT, Graph, Layer, Shape

FLOPS_PER_MAC = 2
ELEMENT_BYTES = 4  # float32, and int32 for tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerCost:
    """Cost of one layer for one sample."""

    layer: str
    """Its name."""
    kind: str
    """Its kind."""
    parameters: int
    """Elements of its parameters, buffers not counted."""
    forward_flops: int
    """FLOPs of the forward pass."""
    backward_flops: int
    """FLOPs of the backward pass."""
    gradient_bytes: int
    """Bytes of its parameters' gradients (for the batch, not for each sample)."""
    activation_bytes: int
    """Bytes of its output."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphCost:
    """Cost of every layer, in graph order, and their sums."""

    layers: tuple[LayerCost, ...]
    """One for each layer, the input included."""

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one forward pass of one sample: the usual "4.1 G" of ResNet-50."""
        return self.forward_flops // FLOPS_PER_MAC

    @property
    def forward_flops(self) -> int:
        """FLOPs of one forward pass of one sample."""
        return sum(layer.forward_flops for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        """FLOPs of one backward pass of one sample."""
        return sum(layer.backward_flops for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """Bytes that one step of data parallelism exchanges, whatever the batch."""
        return sum(layer.gradient_bytes for layer in self.layers)

    @property
    def activation_bytes(self) -> int:
        """Bytes of all outputs of one sample."""
        return sum(layer.activation_bytes for layer in self.layers)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Macs:
    """Forward MACs of a layer, by what their backward pass must compute."""

    from_input: int = 0
    """Weight x the layer's input: backward computes the weight's gradient and, if needed before it, the input's."""
    inner: int = 0
    """Products of values that the layer itself computed: backward always computes both gradients."""


def cost(graph: Graph) -> GraphCost:
    """Count every layer of a graph."""
    shapes: dict[str, Shape] = {layer.name: layer.shape for layer in graph.layers}
    wants_gradient: dict[str, bool] = {}
    costs: list[LayerCost] = []
    for layer in graph.layers:
        upstream = any(wants_gradient[source] for source in layer.inputs)
        trainable = sum(parameter.size for parameter in layer.parameters if parameter.trainable)
        wants_gradient[layer.name] = upstream or trainable > 0
        macs = _macs(layer, shapes)
        backward_macs = macs.from_input * ((trainable > 0) + upstream)
        backward_macs += 2 * macs.inner * wants_gradient[layer.name]
        costs.append(
            LayerCost(
                layer=layer.name,
                kind=layer.kind,
                parameters=sum(parameter.size for parameter in layer.parameters),
                forward_flops=FLOPS_PER_MAC * (macs.from_input + macs.inner),
                backward_flops=FLOPS_PER_MAC * backward_macs,
                gradient_bytes=ELEMENT_BYTES * trainable,
                activation_bytes=ELEMENT_BYTES * math.prod(layer.shape),
            )
        )
    return GraphCost(layers=tuple(costs))


def _macs(layer: Layer, shapes: Mapping[str, Shape]) -> _Macs:
    if layer.kind == INPUT:
        return _Macs()
    x = shapes[layer.inputs[0]]
    sizes = {parameter.name: parameter.size for parameter in layer.parameters}
    if layer.kind == "conv2d":
        return _Macs(from_input=sizes["weight"] * math.prod(layer.shape[1:]))
    if layer.kind == "linear":
        return _Macs(from_input=sizes["weight"] * math.prod(layer.shape[:-1]))
    if layer.kind == "lstm":
        return _Macs(from_input=sizes["w_x"] * x[0], inner=sizes["w_h"] * x[0])
    if layer.kind == "attention":
        steps, width = x
        # Scores and weighted sum: each steps x steps x width over all heads together.
        inner = sizes["out_weight"] * steps + 2 * steps * steps * width
        return _Macs(from_input=sizes["qkv_weight"] * steps, inner=inner)
    return _Macs()
