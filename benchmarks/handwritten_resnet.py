"""ResNet for CIFAR as a PyTorch user writes it, with a plain training loop: Paceline's numbers are compared with it.

It does not use Paceline. `python handwritten_resnet.py DEPTH BATCH WARMUP STEPS` prints seconds per step.
Runs inside the PyTorch environment.
"""

import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812  PyTorch's own habit
from torch import nn

POOL = 8
"""Batches in memory."""


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.stride = stride
        self.padding = channels - channels_in

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.padding:
            low = self.padding // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, low, self.padding - low))
        return self.relu(y + x)


class ResNet(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        blocks = []
        channels_in = 16
        for channels in (16, 32, 64):
            for index in range((depth - 2) // 6):
                blocks.append(Block(channels_in, channels, 2 if index == 0 and channels > 16 else 1))
                channels_in = channels
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn(self.conv(x)), inplace=True)
        return self.fc(self.blocks(x).mean((2, 3)))


def main(depth: int, batch: int, warmup: int, steps: int) -> float:
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.manual_seed(0)
    model = ResNet(depth).to(memory_format=torch.channels_last)
    # Fused, as in our adapter: the comparison is about the harness, not about optimizers.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
    inputs = [torch.randn(batch, 3, 32, 32).to(memory_format=torch.channels_last) for _ in range(POOL)]
    targets = [torch.randint(0, 10, (batch,)) for _ in range(POOL)]
    started = 0.0
    for number in range(warmup + steps):
        if number == warmup:
            started = time.perf_counter()
        loss = F.cross_entropy(model(inputs[number % POOL]), targets[number % POOL])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return (time.perf_counter() - started) / steps


if __name__ == "__main__":
    print(main(*(int(word) for word in sys.argv[1:5])))
