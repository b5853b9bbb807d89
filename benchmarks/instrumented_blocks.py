"""One process of `overhead.py` (a): blocks of steps with and without Paceline's instrumentation, turn by turn.

Runs inside the PyTorch environment on a job of Paceline's; prints, for each pair of blocks, instrumented ÷ bare.
The same model, optimizer and batches in both: what differs is what Paceline adds to a step (laps, CPU clock, the hook
on the last gradient, the loss kept) and to a block (turning laps into columns, writing the event line).
"""

import json
import os
import sys
import time

from paceline_worker import protocol
from paceline_worker.frameworks import torch_phases
from paceline_worker.frameworks.torch import Training
from paceline_worker.phases import Steps

MINIMUM_PAIRS = 10


def main(seconds: float, block_steps: int) -> list:
    job = protocol.load_job(os.environ)
    events = protocol.Events(job.events_path, job.rank)
    training = Training(job)
    steps = Steps(torch_phases.PHASES)
    instrumented_step = training.stepper(steps)
    source, forward, optimizer = training.source, training._forward(), training.optimizer  # noqa: SLF001

    def bare(first: int) -> float:
        for hook in training.gradients._hooks:  # noqa: SLF001  the one difference that lives outside the step
            hook.remove()
        began = time.perf_counter()
        for number in range(first, first + block_steps):
            inputs, targets = source(number)
            loss = forward(inputs, targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        took = time.perf_counter() - began
        training.gradients.settle()
        return took

    def instrumented(first: int) -> float:
        began = time.perf_counter()
        steps.open()
        for number in range(first, first + block_steps):
            instrumented_step(number)
        events.write("steps", kind="measured", first=first, **steps.drain())
        return time.perf_counter() - began

    instrumented(0)
    bare(0)
    ratios = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(ratios) < MINIMUM_PAIRS:
        pair = len(ratios)
        first = pair * block_steps
        # A B, then B A: a steady drift of the machine favours neither.
        if pair % 2:
            without, within = bare(first), instrumented(first)
        else:
            within, without = instrumented(first), bare(first)
        ratios.append(within / without)
    return ratios


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), int(sys.argv[2]))))
