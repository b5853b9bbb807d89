"""One training step of TensorFlow, and where its time goes.

The step is one program, so a measured step has two phases that are timed:

    data  the batch is at hand
    step  forward, backward, exchange and update: until all variables are updated

What is inside is derived after all measured steps. Of a `tf.function`, from the operators in a profile of a few more
steps, each put down to the name scope it was written in (`profile`). XLA and eager operators have no such
names, and with peers over gRPC TensorFlow 2.21's profiler was seen once to end a process as it was stopped (why is not
known): there, programs of parts of the step are run in turn, and the differences of their times are given, which may
come out below zero. Communication contains waiting for slower ranks.
"""

import functools

from paceline_worker import clock
from paceline_worker.frameworks.differences import derive, rounds_of
from paceline_worker.frameworks.tensorflow.profile import phases_by_operators
from paceline_worker.frameworks.tensorflow.programs import traced

PHASES = ("data", "step")


class Loss(object):
    """The mean loss of this process's workers, read when the block is written."""

    def __init__(self, values):
        self._values = values

    def __float__(self):
        return sum(float(value) for value in self._values) / len(self._values)


def stepper(batch, program, losses, steps):
    """A function that takes step `number` and laps its phases.

    Args:
        batch: number of the step → what the program takes.
        losses: what the program returns → the loss of each worker of this process.

    On a CPU a call of a function returns when all that it does is done; there is nothing to wait for.
    """
    lap, end = steps.lap, steps.end

    def step(number):
        given = batch(number)
        lap()
        loss = program(*given)
        lap()
        end(Loss(losses(loss)))

    return step


def derive_phases(job, training):
    """The fact `phases_derived`. Trains on, and what it trains is of no use afterwards."""
    given = training.source(0)
    rounds = rounds_of(job.steps)
    if job.knobs["eager"] or job.knobs["jit_compile"] or job.world_size > 1:
        return _by_differences(training, given, rounds)
    return phases_by_operators(job, lambda: training.program(*given), rounds)


def _by_differences(training, given, rounds):
    programs, group = training.programs, training.group
    shared = group.name != "none"
    made = [("forward", programs.forward()), ("backward", programs.gradients())]
    if shared:
        made.append(("update", programs.step(exchange=False)))
    begun = clock.wall()
    parts = [(phase, traced(program, *given)[0]) for phase, program in made]
    spent = clock.wall() - begun
    parts.append(("communication" if shared else "update", training.program))
    calls = [(phase, functools.partial(program, *given)) for phase, program in parts]
    return derive(calls, rounds, group.synchronize, spent)
