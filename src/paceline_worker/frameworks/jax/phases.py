"""One training step of JAX, and where its time goes.

The step is one program, so a measured step has two phases that are timed:

    data  until the batch is at hand, where the step before it did not last longer
    step  forward, backward, exchange and update: until loss, parameters and all else are ready

What is inside can only be derived: programs of parts of the step (forward; forward and backward; a step without
exchange; the whole) are run in turn in the same process, after all measured steps, and the differences of their times
are given. These are not times of the step's parts: the compiler fuses over their borders, and a program that ends with
the gradients must write them all. A difference may come out below zero, and is given as it is. Communication contains
waiting for slower ranks.
"""

from collections import deque

import jax

from paceline_worker import clock
from paceline_worker.frameworks.differences import derive, rounds_of
from paceline_worker.loop import blocks

PHASES = ("data", "step")


class Loss(object):
    """The mean loss of this rank's workers, read when the block is written."""

    def __init__(self, array):
        self._array = array

    def __float__(self):
        own = [float(shard.data[0]) for shard in self._array.addressable_shards]
        return sum(own) / len(own)


def stepper(job, batch, program, carry, steps):
    """A function that takes step `number` and laps its phases, and one that gives the carry up to now.

    Args:
        batch: number of the step → (inputs, targets).
        program: (carry, inputs, targets) → (carry, loss), with the carry donated.
        steps: a Steps of PHASES.

    A step is started without waiting for those before it, as everybody's loop does, but for at most `run_ahead` of
    them. It is over when its loss is there (as is all else that the program makes), so a sample reaches from the end
    of one step to the end of the next, and the last one of a block waits for all.
    """
    ahead = job.knobs["run_ahead"]
    last_of_blocks = {first + count - 1 for _, first, count in blocks(job.warmup_steps, job.steps)}
    under_way = deque()
    held = [carry]

    def step(number):
        inputs, targets = batch(number)
        at_hand = clock.wall()
        held[0], loss = program(held[0], inputs, targets)
        under_way.append((at_hand, loss))
        most = 0 if number in last_of_blocks else ahead
        while under_way and (len(under_way) > most or under_way[0][1].is_ready()):
            at_hand, loss = under_way.popleft()
            steps.lap_at(at_hand)
            loss.block_until_ready()
            steps.lap()
            steps.end(Loss(loss))

    return step, lambda: held[0]


def derive_phases(job, programs, whole, carry, batch, group, cache):
    """The fact `phases_derived`. Trains on with `carry`, which is of no use afterwards.

    Args:
        programs: a Programs.
        whole: the compiled step.
    """
    # One carry for all: a step gives its memory away, and the next program needs what it left.
    held = [carry, *batch(0)]
    made = [("forward", programs.forward()), ("backward", programs.gradients())]
    if job.workers > 1:
        made.append(("update", programs.step(exchange=False)))
    spent, parts = 0.0, []
    for phase, program in made:
        ready, took = cache.compiled(program, *held)
        spent += took["compile_s"]
        parts.append((phase, runner(ready, held)))
    parts.append(("communication" if job.workers > 1 else "update", runner(whole, held)))
    group.meet()
    return derive(parts, rounds_of(job.steps), group.synchronize, spent)


def runner(program, held):
    """A function that runs a program on what is held, and holds the carry that a step gives back."""

    def run():
        results = jax.block_until_ready(program(*held))
        if isinstance(results[0], dict):
            held[0] = results[0]

    return run
