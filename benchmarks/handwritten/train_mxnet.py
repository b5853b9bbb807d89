"""MXNet as its Gluon tutorials have it: HybridBlocks, `autograd.record`, `Trainer.step`; hybridized with static_alloc
and static_shape, as its advice on performance says. The loop never waits for the engine.

`python train_mxnet.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys
from typing import Any

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

from turns import take_turns

POOL = 16
"""Batches in memory."""


class Block(nn.HybridBlock):
    def __init__(self, channels_in: int, channels: int, stride: int, **named: Any) -> None:
        super().__init__(**named)
        self.missing = (channels - channels_in) // 2
        self.stride = stride
        with self.name_scope():
            self.body = nn.HybridSequential()
            self.body.add(
                nn.Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=channels_in),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(channels, 3, 1, 1, use_bias=False, in_channels=channels),
                nn.BatchNorm(),
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803  Gluon's own habit
        y = self.body(x)
        if self.missing:
            x = F.slice(x, begin=(None,) * 4, end=(None,) * 4, step=(1, 1, self.stride, self.stride))
            # F.pad has no padding of channels.
            zeros = F.zeros_like(F.slice_axis(x, axis=1, begin=0, end=self.missing))
            x = F.concat(zeros, x, zeros, dim=1)
        return F.Activation(x + y, act_type="relu")


def resnet20() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, 1, 1, use_bias=False, in_channels=3), nn.BatchNorm(), nn.Activation("relu"))
    channels_in = 16
    for channels in (16, 32, 64):
        for index in range(3):
            net.add(Block(channels_in, channels, 2 if index == 0 and channels > 16 else 1))
            channels_in = channels
    net.add(nn.GlobalAvgPool2D(), nn.Dense(10, in_units=64))
    return net


def mlp() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    return net


def main(name: str, batch: int, warmup: int) -> None:
    mx.random.seed(0)
    context = mx.cpu()
    if name == "resnet20":
        net, shape, weight_decay = resnet20(), (3, 32, 32), 1e-4
    else:
        net, shape, weight_decay = mlp(), (784,), 0.0
    net.initialize(mx.init.Xavier(), ctx=context)
    net.hybridize(static_alloc=True, static_shape=True)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    settings = {"learning_rate": 0.01, "momentum": 0.9, "wd": weight_decay}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings)
    inputs = [mx.nd.random.normal(shape=(batch, *shape), ctx=context) for _ in range(POOL)]
    targets = [mx.nd.random.randint(0, 10, shape=(batch,), ctx=context) for _ in range(POOL)]

    def step(number: int) -> None:
        with autograd.record():
            loss = loss_fn(net(inputs[number % POOL]), targets[number % POOL])
        loss.backward()
        trainer.step(batch)

    take_turns(step, mx.nd.waitall, warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
