"""Our side of `adapters.py`: an adapter as in a run, whose blocks of measured steps wait for their turn.

It runs inside a framework's environment on a job of Paceline: `python adapter_turns.py BLOCK_STEPS`. Only
`paceline_worker.loop` is replaced, before the adapter imports it: blocks have the requested length, and each waits for
a request. Inside a block nothing is different, and the block is written to the events as always.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import time
from typing import Any

from paceline_worker import loop, protocol
from turns import Turns


def main(block_steps: int) -> None:
    turns = Turns()
    job = protocol.load_job(os.environ)
    events = protocol.Events(job.events_path, job.rank)
    # Some adapters must know which step is the last of its block.
    loop.blocks = functools.partial(loop.blocks, block_steps=block_steps)

    def take_steps(job: Any, events: Any, steps: Any, step: Any, synchronize: Any, begin_block: Any = None) -> None:
        def take(kind: str, first: int, count: int) -> float:
            synchronize()
            began = time.perf_counter()
            (begin_block or steps.open)()
            for number in range(first, first + count):
                step(number)
            took = time.perf_counter() - began
            events.write("steps", kind=kind, first=first, **steps.drain())
            return took / count

        measured = []
        for kind, first, count in loop.blocks(job.warmup_steps, job.steps):
            if kind == "measured":
                measured.append((kind, first, count))
            else:
                take(kind, first, count)
        for block, asked in zip(measured, turns.asked()):  # noqa: B905  Python 3.8 has no strict
            assert block[2] == asked, (block, asked)
            turns.answer(take(*block))
        events.close()
        sys.stderr.flush()
        # What follows the steps (digests, derived phases) is not measured here.
        os._exit(0)

    loop.take_steps = take_steps
    importlib.import_module(job.module).train(job, events)


if __name__ == "__main__":
    main(int(sys.argv[1]))
