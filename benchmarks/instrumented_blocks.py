"""One process of `overhead.py` (a): alternating steps with and without Paceline's instrumentation.

Runs inside the PyTorch environment on a job of Paceline; prints instrumented ÷ bare for each pair of steps, and the
share that writing a block adds. Both sides have the same model, optimizer and batches. They differ in what Paceline
adds to a step (laps, CPU clock, the hook on the last gradient, keeping the loss) and, every few steps, to a block
(turning laps into columns, writing the event line). Blocks are single steps: the shorter they are, the more similar
are the conditions of the two sides of a pair on a machine that is never fully quiet.
"""

import json
import os
import sys
import time
from collections.abc import Callable

from paceline_worker import protocol
from paceline_worker.frameworks.torch import phases as torch_phases
from paceline_worker.frameworks.torch.training import Training
from paceline_worker.loop import BLOCK_STEPS
from paceline_worker.phases import Steps

WARMUP = 5
MINIMUM_PAIRS = 20


def main(seconds: float) -> dict:
    job = protocol.load_job(os.environ)
    events = protocol.Events(job.events_path, job.rank)
    training = Training(job)
    steps = Steps(torch_phases.PHASES)
    way = training.way
    source, forward, optimizer = training.source, way.forward(), way.optimizer
    instrumented_step = way.stepper(source, steps)

    def bare_step(number: int) -> None:
        inputs, targets = source(number)
        loss = forward(inputs, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def timed(step: Callable[[int], None], number: int) -> float:
        # Around the call: on its way out each step frees its loss and the graph behind it, which takes time.
        began = time.perf_counter()
        step(number)
        return time.perf_counter() - began

    def instrumented(number: int) -> float:
        return timed(instrumented_step, number)

    def bare(number: int) -> float:
        for hook in way.gradients._hooks:  # noqa: SLF001  the one difference that lives outside the step
            hook.remove()
        took = timed(bare_step, number)
        way.gradients.settle()
        return took

    def write(first: int) -> float:
        began = time.perf_counter()
        events.write("steps", kind="measured", first=first, **steps.drain())
        steps.open()
        return time.perf_counter() - began

    steps.open()
    for number in range(WARMUP):
        instrumented(number)
        bare(number)
    write(0)
    ratios, bare_s, write_s = [], 0.0, 0.0
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(ratios) < MINIMUM_PAIRS:
        number = len(ratios)
        # A B, then B A: a steady drift of the machine favours neither.
        if number % 2:
            without, within = bare(number), instrumented(number)
        else:
            within, without = instrumented(number), bare(number)
        ratios.append(within / without)
        bare_s += without
        if len(ratios) % BLOCK_STEPS == 0:
            write_s += write(number)
    write_s += write(len(ratios))
    return {"ratios": ratios, "write_share": write_s / bare_s}


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]))))
