"""Keras on JAX, as its guide "Writing a training loop from scratch in JAX" has it, with the old state donated as JAX's
own documentation advises. The loop starts steps without waiting for them.

`python train_keras_jax.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import jax

from keras_models import POOL, prepared
from turns import take_turns


def main(name: str, batch: int, warmup: int) -> None:
    model, loss_fn, optimizer, arrays = prepared(name, batch)
    batches = [(jax.device_put(x), jax.device_put(y)) for x, y in arrays]
    optimizer.build(model.trainable_variables)

    def compute_loss_and_updates(trainable: Any, non_trainable: Any, x: jax.Array, y: jax.Array) -> tuple[Any, Any]:
        y_pred, non_trainable = model.stateless_call(trainable, non_trainable, x, training=True)
        return loss_fn(y, y_pred), non_trainable

    grad_fn = jax.value_and_grad(compute_loss_and_updates, has_aux=True)

    @partial(jax.jit, donate_argnums=0)
    def train_step(state: Any, x: jax.Array, y: jax.Array) -> tuple[Any, jax.Array]:
        trainable, non_trainable, optimizer_variables = state
        (loss, non_trainable), grads = grad_fn(trainable, non_trainable, x, y)
        trainable, optimizer_variables = optimizer.stateless_apply(optimizer_variables, grads, trainable)
        return (trainable, non_trainable, optimizer_variables), loss

    state = tuple(
        [variable.value for variable in variables]
        for variables in (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    )
    held: list[Any] = [state, None]

    def step(number: int) -> None:
        held[:] = train_step(held[0], *batches[number % POOL])

    take_turns(step, lambda: jax.block_until_ready(held), warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
