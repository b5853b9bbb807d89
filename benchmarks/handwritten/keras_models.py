"""The two models as a Keras user writes them, functional, for all three backends."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import layers, ops

POOL = 16
"""Batches in memory."""


def conv_norm(x: Any, filters: int, stride: int = 1) -> Any:
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False, kernel_initializer="he_normal")(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def resnet20() -> keras.Model:
    inputs = keras.Input((32, 32, 3))
    x = layers.Activation("relu")(conv_norm(inputs, 16))
    for filters in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and filters > 16 else 1
            y = layers.Activation("relu")(conv_norm(x, filters, stride))
            y = conv_norm(y, filters)
            if stride == 2:
                missing = filters // 4
                x = ops.pad(x[:, ::2, ::2], [(0, 0), (0, 0), (0, 0), (missing, missing)])
            x = layers.Activation("relu")(layers.Add()([x, y]))
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def mlp() -> keras.Model:
    inputs = keras.Input((784,))
    x = layers.Dense(512, activation="relu")(inputs)
    x = layers.Dense(512, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10)(x))


def prepared(name: str, batch: int) -> tuple[keras.Model, Any, Any, list[Any]]:
    """Model, loss, optimizer, and batches as NumPy arrays.

    Keras's own weight decay, one argument of the optimizer, shrinks weights beside the gradient. The cost is that of
    adding it to the gradient.
    """
    keras.utils.set_random_seed(0)
    model = resnet20() if name == "resnet20" else mlp()
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    decay = 1e-4 if name == "resnet20" else None
    optimizer = keras.optimizers.SGD(learning_rate=0.01, momentum=0.9, weight_decay=decay)
    random = np.random.default_rng(0)
    shape = (batch, *model.input_shape[1:])
    batches = [
        (random.standard_normal(shape, dtype="float32"), random.integers(0, 10, batch, dtype="int32"))
        for _ in range(POOL)
    ]
    return model, loss_fn, optimizer, batches
