"""How two programs take turns: `adapters.py` requests blocks of steps, and one program at a time computes.

A program prints "ready" once it is warm. Then it reads a number of steps from a line of stdin, takes them all, and
prints a line with seconds per step. At the end of stdin the program ends. It uses the standard library only and runs
on any Python from 3.8 on.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Callable, Iterator  # noqa: UP035  as Python 3.8 has them


class Turns:
    """The side of the measured program."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        # Frameworks print; their output must not be mistaken for an answer.
        os.dup2(2, 1)

    def asked(self) -> Iterator[int]:
        """Sizes of the requested blocks, until stdin ends."""
        self._answers.write("ready\n")
        # Not by iteration, which would read ahead.
        for line in iter(sys.stdin.readline, ""):
            yield int(line)

    def answer(self, seconds_a_step: float) -> None:
        self._answers.write(f"{seconds_a_step!r}\n")


def take_turns(step: Callable[[int], None], wait: Callable[[], None], warmup: int) -> None:
    """Warm up, then take blocks of steps on request.

    Args:
        step: takes step `number`; may return before it is done.
        wait: returns when all steps are done. Called once a block: no loop waits more often than it must.
    """
    turns = Turns()
    taken = warmup
    for number in range(warmup):
        step(number)
    wait()
    for count in turns.asked():
        began = time.perf_counter()
        for number in range(taken, taken + count):
            step(number)
        wait()
        turns.answer((time.perf_counter() - began) / count)
        taken += count
    sys.stdout.flush()
    sys.stderr.flush()
    # Frameworks keep threads that can hang in interpreter shutdown; all results are printed by now.
    os._exit(0)
