"""Layer kinds: for each one, which shapes it takes and gives, which tensors it owns, and what it means.

A kind is a pure function from the shapes of its inputs (without batch) and its attributes to `Inferred`. Its
docstring is the contract that every framework builder must meet, above all where frameworks differ. This module must
not know any framework, nor how a graph is put together (`builder`). Sequence kinds are in `sequence_layers`.

Weight layouts: convolutions [out, in/groups, kernel height, kernel width], linear [out, in]. Images are
channels-first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from paceline.workloads.graph import Attribute, Parameter, Shape

Pair: TypeAlias = tuple[int, int]
Init: TypeAlias = "dict[str, Attribute]"

ZEROS: Mapping[str, Attribute] = {"kind": "zeros"}
ONES: Mapping[str, Attribute] = {"kind": "ones"}

# Logits near 0, so that the loss starts at ln(classes) and not at a random value far above. The last layer starts so in
# AlexNet's, VGG's and "ImageNet in 1 hour"'s recipes (Goyal et al. 2017, section 5.1).
HEAD_STD = 0.01

IMAGE_RANK = 3
SEQUENCE_RANK = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Inferred:
    """What follows from a kind, its input shapes and its attributes."""

    shape: Shape
    """Output shape without batch."""
    parameters: tuple[Parameter, ...] = ()
    """Tensors with a gradient."""
    buffers: tuple[Parameter, ...] = ()
    """Tensors without one that training updates."""


def conv2d(x: Shape, *, filters: int, kernel: Pair, stride: Pair, padding: Pair, groups: int, bias: bool) -> Inferred:
    """Cross-correlation (no kernel flip) with the same zero padding on both sides.

    Out = floor((in + 2*padding - kernel) / stride) + 1. Frameworks differ at stride 2: TensorFlow's "SAME"
    pads only below and right there, which is another function; pad explicitly and convolve "VALID".
    """
    channels, height, width = image(x)
    positive("filters", filters)
    positive("groups", groups)
    if channels % groups or filters % groups:
        raise ValueError(f"{groups} groups divide neither {channels} channels nor {filters} filters evenly")
    spatial = window((height, width), kernel, stride, padding)
    weight = (filters, channels // groups, *kernel)
    fan_in = math.prod(weight[1:])
    return Inferred(shape=(filters, *spatial), parameters=affine(weight, he_normal(fan_in), filters, bias))


def batch_norm(x: Shape, *, momentum: float, eps: float) -> Inferred:
    """Normalise each channel (axis 0 without batch) over batch and positions, then scale and shift.

    y = (x - mean) / sqrt(var + eps) * weight + bias, with the biased batch variance, of the rank's own batch
    (not synchronised). Running statistics: new = (1 - momentum)*old + momentum*batch, PyTorch's sense; Keras,
    Flax and MXNet call 1 - momentum "momentum". running_var takes the unbiased variance, as PyTorch and cuDNN
    do.
    """
    if len(x) not in (1, IMAGE_RANK):
        raise ValueError(f"takes an image or a vector, not shape {x}")
    fraction("momentum", momentum)
    if eps <= 0:
        raise ValueError(f"eps must be above 0, not {eps}")
    return Inferred(
        shape=x,
        parameters=scale_and_shift(x[0]),
        buffers=(
            Parameter(name="running_mean", shape=(x[0],), init=ZEROS, trainable=False),
            Parameter(name="running_var", shape=(x[0],), init=ONES, trainable=False),
        ),
    )


def relu(x: Shape) -> Inferred:
    """max(x, 0); the gradient at 0 is 0."""
    return Inferred(shape=x)


def gelu(x: Shape) -> Inferred:
    """Exact: x * Phi(x), by erf. JAX's and GPT-2's is the tanh approximation; ask for the exact one."""
    return Inferred(shape=x)


def tanh(x: Shape) -> Inferred:
    """Hyperbolic tangent."""
    return Inferred(shape=x)


def max_pool2d(x: Shape, *, kernel: Pair, stride: Pair, padding: Pair) -> Inferred:
    """Maximum over windows; padding counts as minus infinity; output size rounded down as for conv2d."""
    channels, height, width = image(x)
    return Inferred(shape=(channels, *pool_window((height, width), kernel, stride, padding)))


def avg_pool2d(x: Shape, *, kernel: Pair, stride: Pair, padding: Pair) -> Inferred:
    """Mean over windows; padded zeros are counted (divide by the kernel's area always); rounded down.

    Frameworks differ here: TensorFlow leaves padding out of the mean; pad with zeros first and pool "VALID".
    """
    channels, height, width = image(x)
    return Inferred(shape=(channels, *pool_window((height, width), kernel, stride, padding)))


def global_avg_pool(x: Shape) -> Inferred:
    """Mean over height and width: (C, H, W) to (C,)."""
    return Inferred(shape=(image(x)[0],))


def flatten(x: Shape) -> Inferred:
    """To one axis in the order channel, row, column; a channels-last builder must transpose first."""
    return Inferred(shape=(math.prod(x),))


def linear(x: Shape, *, features: int, bias: bool) -> Inferred:
    """On the last axis y = x W^T + b, so it takes (F,) and (T, F) alike; W is [out, in]."""
    positive("features", features)
    if len(x) not in (1, SEQUENCE_RANK):
        raise ValueError(f"takes a vector or a sequence, not shape {x}; flatten an image first")
    weight = (features, x[-1])
    return Inferred(shape=(*x[:-1], features), parameters=affine(weight, he_normal(x[-1]), features, bias))


def dropout(x: Shape, *, rate: float) -> Inferred:
    """Zero each element with probability `rate` and multiply the rest by 1/(1 - rate), in training only.

    `rate` is the probability to drop (old TensorFlow's keep_prob is 1 - rate). Each framework draws different masks.
    """
    fraction("rate", rate)
    return Inferred(shape=x)


def add(*xs: Shape) -> Inferred:
    """Element-wise sum of two or more equal shapes, no broadcasting."""
    if len(xs) < 2 or any(x != xs[0] for x in xs):
        raise ValueError(f"takes two or more equal shapes, not {_listed(xs)}")
    return Inferred(shape=xs[0])


def concat(*xs: Shape) -> Inferred:
    """Join two or more images along channels, in the order of the inputs; height and width must agree."""
    if len(xs) < 2 or any(image(x)[1:] != xs[0][1:] for x in xs):
        raise ValueError(f"takes two or more images of the same height and width, not {_listed(xs)}")
    return Inferred(shape=(sum(x[0] for x in xs), *xs[0][1:]))


def subsample_pad(x: Shape, *, stride: Pair, pad_low: int, pad_high: int) -> Inferred:
    """ResNet's option-A shortcut: every stride-th row and column from 0, then zero channels below and above.

    x[:, :, ::stride, ::stride] with `pad_low` zero channels before the first channel and `pad_high` after the
    last.
    """
    channels, height, width = image(x)
    positive("stride", *stride)
    if pad_low < 0 or pad_high < 0:
        raise ValueError(f"padding must not be negative: {pad_low}, {pad_high}")
    rows, columns = -(-height // stride[0]), -(-width // stride[1])
    return Inferred(shape=(channels + pad_low + pad_high, rows, columns))


# Functions that several kinds use, also those of `sequence_layers`.


def normal(std: float) -> Init:
    """Normal distribution with the given standard deviation."""
    return {"kind": "normal", "std": std}


def he_normal(fan_in: int) -> Init:
    """Standard deviation sqrt(2 / fan_in), He et al. 2015 eq. 10."""
    return {"kind": "he_normal", "fan_in": fan_in}


def glorot_uniform(fan_in: int, fan_out: int) -> Init:
    """Uniform within sqrt(6 / (fan_in + fan_out)), Glorot and Bengio 2010 eq. 16."""
    return {"kind": "glorot_uniform", "fan_in": fan_in, "fan_out": fan_out}


def affine(weight: Shape, init: Mapping[str, Attribute], outputs: int, bias: bool) -> tuple[Parameter, ...]:
    """A weight and, if asked for, a bias that starts at 0."""
    tensors = (Parameter(name="weight", shape=weight, init=init),)
    return (*tensors, Parameter(name="bias", shape=(outputs,), init=ZEROS)) if bias else tensors


def scale_and_shift(size: int) -> tuple[Parameter, ...]:
    """The weight (1) and bias (0) of a norm."""
    return (
        Parameter(name="weight", shape=(size,), init=ONES),
        Parameter(name="bias", shape=(size,), init=ZEROS),
    )


def image(x: Shape) -> tuple[int, int, int]:
    """Channels, height, width; ValueError if `x` is not an image."""
    if len(x) != IMAGE_RANK:
        raise ValueError(f"takes an image (channels, height, width), not shape {x}")
    return x[0], x[1], x[2]


def window(size: Pair, kernel: Pair, stride: Pair, padding: Pair) -> Pair:
    """Output height and width of a sliding window; ValueError if it does not fit once."""
    positive("kernel", *kernel)
    positive("stride", *stride)
    if min(padding) < 0:
        raise ValueError(f"padding must not be negative: {padding}")
    if any(k > n + 2 * p for k, n, p in zip(kernel, size, padding, strict=True)):
        raise ValueError(
            f"kernel {kernel[0]}x{kernel[1]} does not fit in {size[0]}x{size[1]} with padding {padding[0]}x{padding[1]}"
        )
    (height, width), (pad_rows, pad_columns) = size, padding
    return (
        (height + 2 * pad_rows - kernel[0]) // stride[0] + 1,
        (width + 2 * pad_columns - kernel[1]) // stride[1] + 1,
    )


def pool_window(size: Pair, kernel: Pair, stride: Pair, padding: Pair) -> Pair:
    """As `window`, but no window may lie in the padding alone, which has no maximum."""
    if any(2 * p > k for k, p in zip(kernel, padding, strict=True)):
        raise ValueError(f"padding {padding} is more than half of kernel {kernel}")
    return window(size, kernel, stride, padding)


def positive(what: str, *values: int) -> None:
    """ValueError unless every value is at least 1."""
    if any(value < 1 for value in values):
        raise ValueError(f"{what} must be at least 1, not {values[0] if len(values) == 1 else values}")


def fraction(what: str, value: float) -> None:
    """ValueError unless 0 <= value < 1."""
    if not 0 <= value < 1:
        raise ValueError(f"{what} must be at least 0 and below 1, not {value}")


def _listed(shapes: tuple[Shape, ...]) -> str:
    return " and ".join(str(shape) for shape in shapes)
