"""JAX as its tutorials have it: pure functions, `jit` of `value_and_grad` and SGD, old state donated, images NHWC.

Batch norm takes its variance as `jax.nn.standardize` and Flax do, and is applied as one product and one sum, which XLA
turns into a faster program for processors. The loop starts steps without waiting for them.

`python train_jax.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Callable  # noqa: UP035

import jax
import jax.numpy as jnp
from jax import lax

from turns import take_turns

POOL = 16
"""Batches in memory."""
STAGES = (16, 32, 64)
BLOCKS = 3


def conv(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(x: jax.Array, p: Any, s: Any) -> tuple[jax.Array, Any]:
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
    scale = lax.rsqrt(variance + 1e-5) * p["scale"]
    y = x * scale + (p["bias"] - mean * scale)
    return y, {"mean": 0.9 * s["mean"] + 0.1 * mean, "variance": 0.9 * s["variance"] + 0.1 * variance}


def resnet(parameters: Any, statistics: Any, x: jax.Array) -> tuple[jax.Array, Any]:
    new: dict[str, Any] = {}

    def conv_norm(x: jax.Array, name: str, stride: int = 1) -> jax.Array:
        y = conv(x, parameters[name]["kernel"], stride)
        y, new[name] = batch_norm(y, parameters[name], statistics[name])
        return y

    x = jax.nn.relu(conv_norm(x, "stem"))
    for filters in STAGES:
        for block in range(BLOCKS):
            stride = 2 if block == 0 and filters > STAGES[0] else 1
            y = jax.nn.relu(conv_norm(x, f"{filters}.{block}.a", stride))
            y = conv_norm(y, f"{filters}.{block}.b")
            if stride == 2:
                missing = filters // 4
                x = jnp.pad(x[:, ::2, ::2], ((0, 0), (0, 0), (0, 0), (missing, missing)))
            x = jax.nn.relu(x + y)
    head = parameters["head"]
    return jnp.mean(x, (1, 2)) @ head["kernel"] + head["bias"], new


def init_resnet(key: jax.Array) -> tuple[Any, Any]:
    parameters: dict[str, Any] = {}
    statistics: dict[str, Any] = {}
    initializer = jax.nn.initializers.he_normal()

    def conv_norm(key: jax.Array, name: str, channels_in: int, channels: int) -> None:
        kernel = initializer(key, (3, 3, channels_in, channels))
        parameters[name] = {"kernel": kernel, "scale": jnp.ones(channels), "bias": jnp.zeros(channels)}
        statistics[name] = {"mean": jnp.zeros(channels), "variance": jnp.ones(channels)}

    keys = iter(jax.random.split(key, 20))
    conv_norm(next(keys), "stem", 3, STAGES[0])
    channels = STAGES[0]
    for filters in STAGES:
        for block in range(BLOCKS):
            conv_norm(next(keys), f"{filters}.{block}.a", channels, filters)
            conv_norm(next(keys), f"{filters}.{block}.b", filters, filters)
            channels = filters
    parameters["head"] = {"kernel": initializer(next(keys), (channels, 10)), "bias": jnp.zeros(10)}
    return parameters, statistics


def mlp(parameters: Any, statistics: Any, x: jax.Array) -> tuple[jax.Array, Any]:
    *hidden, last = parameters
    for w, b in hidden:
        x = jax.nn.relu(x @ w + b)
    w, b = last
    return x @ w + b, statistics


def init_mlp(key: jax.Array) -> tuple[Any, Any]:
    initializer = jax.nn.initializers.he_normal()
    keys = jax.random.split(key, 3)
    sizes = ((784, 512), (512, 512), (512, 10))
    return [(initializer(k, size), jnp.zeros(size[1])) for k, size in zip(keys, sizes)], {}  # noqa: B905


def train_step_of(model: Callable[..., Any], weight_decay: float) -> Callable[..., Any]:
    def loss_fn(parameters: Any, statistics: Any, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Any]:
        logits, statistics = model(parameters, statistics, x)
        log_p = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=-1)
        return -jnp.mean(log_p), statistics

    @partial(jax.jit, donate_argnums=0)
    def train_step(state: Any, x: jax.Array, y: jax.Array) -> tuple[Any, jax.Array]:
        parameters, statistics, velocities = state
        (loss, statistics), gradients = jax.value_and_grad(loss_fn, has_aux=True)(parameters, statistics, x, y)
        velocities = jax.tree.map(lambda v, g, p: 0.9 * v + g + weight_decay * p, velocities, gradients, parameters)
        parameters = jax.tree.map(lambda p, v: p - 0.01 * v, parameters, velocities)
        return (parameters, statistics, velocities), loss

    return train_step


def main(name: str, batch: int, warmup: int) -> None:
    model_key, data_key, target_key = jax.random.split(jax.random.key(0), 3)
    if name == "resnet20":
        model, init, shape, weight_decay = resnet, init_resnet, (32, 32, 3), 1e-4
    else:
        model, init, shape, weight_decay = mlp, init_mlp, (784,), 0.0
    parameters, statistics = init(model_key)
    held = [(parameters, statistics, jax.tree.map(jnp.zeros_like, parameters)), None]
    inputs = [jax.random.normal(key, (batch, *shape)) for key in jax.random.split(data_key, POOL)]
    targets = [jax.random.randint(key, (batch,), 0, 10) for key in jax.random.split(target_key, POOL)]
    train_step = train_step_of(model, weight_decay)

    def step(number: int) -> None:
        held[:] = train_step(held[0], inputs[number % POOL], targets[number % POOL])

    take_turns(step, lambda: jax.block_until_ready(held), warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
