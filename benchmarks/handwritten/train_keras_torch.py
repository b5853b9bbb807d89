"""Keras on PyTorch, as its guide "Writing a training loop from scratch in PyTorch" has it.

`python train_keras_torch.py MODEL BATCH WARMUP`, then blocks of steps as `turns` says. Knows nothing of Paceline.
"""

from __future__ import annotations

import sys

import torch

from keras_models import POOL, prepared
from turns import take_turns


def main(name: str, batch: int, warmup: int) -> None:
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    model, loss_fn, optimizer, arrays = prepared(name, batch)
    batches = [(torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in arrays]

    def step(number: int) -> None:
        inputs, targets = batches[number % POOL]
        logits = model(inputs, training=True)
        loss = loss_fn(targets, logits)
        model.zero_grad()
        trainable_weights = list(model.trainable_weights)
        loss.backward()
        gradients = [v.value.grad for v in trainable_weights]
        with torch.no_grad():
            optimizer.apply(gradients, trainable_weights)

    take_turns(step, lambda: None, warmup)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
