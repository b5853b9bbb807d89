"""PyTorch as its tutorial and tuning guide have it: nn.Module, channels_last, fused SGD, a plain loop.

`python train_torch.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

from handwritten_resnet import ResNet
from turns import take_turns

POOL = 16
"""Batches in memory."""


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 512),
        nn.ReLU(),
        nn.Linear(512, 512),
        nn.ReLU(),
        nn.Linear(512, 10),
    )


def main(name: str, batch: int, warmup: int) -> None:
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.manual_seed(0)
    if name == "resnet20":
        model = ResNet(20).to(memory_format=torch.channels_last)
        inputs = [torch.randn(batch, 3, 32, 32).to(memory_format=torch.channels_last) for _ in range(POOL)]
        weight_decay = 1e-4
    else:
        model = mlp()
        inputs = [torch.randn(batch, 784) for _ in range(POOL)]
        weight_decay = 0.0
    targets = [torch.randint(0, 10, (batch,)) for _ in range(POOL)]
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=weight_decay, fused=True)
    model.train()

    def step(number: int) -> None:
        loss = loss_fn(model(inputs[number % POOL]), targets[number % POOL])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    take_turns(step, lambda: None, warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
