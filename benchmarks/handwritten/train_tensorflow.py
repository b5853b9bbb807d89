"""TensorFlow without Keras, as its guides to modules and to the Core APIs have it: `tf.Module`s, a `tf.function` with a
GradientTape, momentum written out. (Keras's layers on TensorFlow are `train_keras_tensorflow.py`.)

`python train_tensorflow.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys

import tensorflow as tf

from turns import take_turns

POOL = 16
"""Batches in memory."""


class Conv(tf.Module):
    def __init__(self, channels_in: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        he = (2.0 / (9 * channels_in)) ** 0.5
        self.kernel = tf.Variable(tf.random.normal((3, 3, channels_in, channels), stddev=he))
        self.stride = stride

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.conv2d(x, self.kernel, self.stride, "SAME")


class BatchNorm(tf.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = tf.Variable(tf.ones(channels))
        self.offset = tf.Variable(tf.zeros(channels))
        self.mean = tf.Variable(tf.zeros(channels), trainable=False)
        self.variance = tf.Variable(tf.ones(channels), trainable=False)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            x, self.scale, self.offset, self.mean, self.variance, epsilon=1.001e-5, exponential_avg_factor=0.1
        )
        self.mean.assign(mean)
        self.variance.assign(variance)
        return y


class Block(tf.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Conv(channels_in, channels, stride)
        self.bn1 = BatchNorm(channels)
        self.conv2 = Conv(channels, channels)
        self.bn2 = BatchNorm(channels)
        self.stride = stride
        self.missing = (channels - channels_in) // 2

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y = tf.nn.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.missing:
            x = x[:, :: self.stride, :: self.stride]
            x = tf.pad(x, [[0, 0], [0, 0], [0, 0], [self.missing, self.missing]])
        return tf.nn.relu(x + y)


class Dense(tf.Module):
    def __init__(self, features_in: int, features: int) -> None:
        super().__init__()
        self.w = tf.Variable(tf.random.normal((features_in, features), stddev=(2.0 / features_in) ** 0.5))
        self.b = tf.Variable(tf.zeros(features))

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.matmul(x, self.w) + self.b


class ResNet20(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = Conv(3, 16)
        self.bn = BatchNorm(16)
        self.blocks = []
        channels_in = 16
        for channels in (16, 32, 64):
            for index in range(3):
                self.blocks.append(Block(channels_in, channels, 2 if index == 0 and channels > 16 else 1))
                channels_in = channels
        self.fc = Dense(64, 10)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        x = tf.nn.relu(self.bn(self.conv(x)))
        for block in self.blocks:
            x = block(x)
        return self.fc(tf.reduce_mean(x, [1, 2]))


class Mlp(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = [Dense(784, 512), Dense(512, 512)]
        self.fc = Dense(512, 10)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for layer in self.hidden:
            x = tf.nn.relu(layer(x))
        return self.fc(x)


class Momentum(tf.Module):
    def __init__(self, variables: tuple[tf.Variable, ...], weight_decay: float) -> None:
        super().__init__()
        self.velocities = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self.weight_decay = weight_decay

    def apply(self, gradients: list[tf.Tensor], variables: tuple[tf.Variable, ...]) -> None:
        for g, v, w in zip(gradients, self.velocities, variables):  # noqa: B905
            v.assign(0.9 * v + (g + self.weight_decay * w if self.weight_decay else g))
            w.assign_sub(0.01 * v)


def main(name: str, batch: int, warmup: int) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(0)
    if name == "resnet20":
        model, shape, weight_decay = ResNet20(), (32, 32, 3), 1e-4
    else:
        model, shape, weight_decay = Mlp(), (784,), 0.0
    variables = model.trainable_variables
    optimizer = Momentum(variables, weight_decay)
    inputs = [tf.random.normal((batch, *shape)) for _ in range(POOL)]
    targets = [tf.random.uniform((batch,), maxval=10, dtype=tf.int32) for _ in range(POOL)]

    @tf.function
    def train_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(x)))
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    def step(number: int) -> None:
        train_step(inputs[number % POOL], targets[number % POOL])

    # On a CPU a call returns when all that it does is done.
    take_turns(step, lambda: None, warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
