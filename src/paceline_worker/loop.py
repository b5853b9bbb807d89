"""The one loop in which every framework takes its steps: the first, the warm-up, then measured blocks."""

import os

from paceline_worker import clock

BLOCK_STEPS = 100
"""Steps kept in memory between two writes: rare enough to cost nothing, often enough to lose little to a crash."""


def blocks(warmup_steps, steps, block_steps=BLOCK_STEPS):
    """(kind, number of the first step, number of steps), in order.

    The very first step is apart: it pays for compilation, allocation and connections.
    """
    if warmup_steps:
        yield "first", 0, 1
    if warmup_steps > 1:
        yield "warmup", 1, warmup_steps - 1
    for first in range(warmup_steps, warmup_steps + steps, block_steps):
        yield "measured", first, min(block_steps, warmup_steps + steps - first)


def _telling(step, told, folder):
    """The step, which says that it is about to be the one that the host waits for. Other runs pay nothing for this."""

    def tell_and_step(number):
        if number == told:
            with open(os.path.join(folder, "reached.{}".format(told)), "w"):
                pass
        step(number)

    return tell_and_step


def take_steps(job, events, steps, step, synchronize, begin_block=None):
    """Take all steps of the job and write each block's times after it.

    Args:
        steps: the Steps that `step` writes its laps to.
        step: called with the number of the step; takes it, laps and ends it.
        synchronize: returns when all ranks are here, so that a block starts on all of them together.
        begin_block: replaces `steps.open()` for a clock of the caller's own.
    """
    if job.tell_at_step is not None:
        step = _telling(step, job.tell_at_step, job.folder)
    ran_s = waited_s = 0.0
    for kind, first, count in blocks(job.warmup_steps, job.steps):
        before = clock.threads()
        synchronize()
        (begin_block or steps.open)()
        for number in range(first, first + count):
            step(number)
        if kind == "measured":
            ran, waited = threads_since(before, clock.threads())
            ran_s, waited_s = ran_s + ran, waited_s + waited
        events.write("steps", kind=kind, first=first, **steps.drain())
    if ran_s:
        events.write("facts", facts={"threads_ran_s": ran_s, "threads_waited_s": waited_s})


def threads_since(before, after):
    """(seconds that threads ran, seconds that they waited for a core) between two readings of `clock.threads`.

    A thread that began in between counts from its beginning; one that has ended meanwhile counts for nothing.
    """
    ran = waited = 0.0
    for thread, (ran_now, waited_now) in after.items():
        ran_then, waited_then = before.get(thread, (0.0, 0.0))
        ran += ran_now - ran_then
        waited += waited_now - waited_then
    return ran, waited
