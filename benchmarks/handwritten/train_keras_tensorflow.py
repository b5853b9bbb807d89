"""Keras on TensorFlow, as its guide "Writing a training loop from scratch in TensorFlow" has it.

`python train_keras_tensorflow.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys

import tensorflow as tf

from keras_models import POOL, prepared
from turns import take_turns


def main(name: str, batch: int, warmup: int) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    model, loss_fn, optimizer, arrays = prepared(name, batch)
    batches = [(tf.constant(x), tf.constant(y)) for x, y in arrays]

    @tf.function
    def train_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss_value = loss_fn(y, logits)
        grads = tape.gradient(loss_value, model.trainable_weights)
        optimizer.apply(grads, model.trainable_weights)
        return loss_value

    def step(number: int) -> None:
        train_step(*batches[number % POOL])

    # On a CPU a call returns when all that it does is done.
    take_turns(step, lambda: None, warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
