"""One training step of TensorFlow, and where its time goes.

The step is one program, so a measured step has two phases that are timed:

    data  the batch is at hand
    step  forward, backward, exchange and update: until all variables are updated

What is inside is derived after all measured steps. Of a `tf.function`, from the operators in a profile of a few more
steps, each put down to the name scope it was written in (`tensorflow_profile`). XLA and eager operators have no such
names, and with peers over gRPC TensorFlow 2.21's profiler was seen once to end a process as it was stopped (why is not
known): there, programs of parts of the step are run in turn, and the differences of their times are given, which may
come out below zero. Communication contains waiting for slower ranks.
"""

from paceline_worker import clock
from paceline_worker.frameworks.tensorflow_profile import phases_by_operators
from paceline_worker.frameworks.tensorflow_programs import traced

PHASES = ("data", "step")
ROUNDS = 10


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
    rounds = min(ROUNDS, job.steps)
    if job.knobs["eager"] or job.knobs["jit_compile"] or job.world_size > 1:
        return _by_differences(training, given, rounds)
    return phases_by_operators(job, lambda: training.program(*given), rounds)


def _by_differences(training, given, rounds):
    programs, group = training.programs, training.group
    parts = {"forward": programs.forward(), "gradients": programs.gradients()}
    if group.name != "none":
        parts["local_step"] = programs.step(exchange=False)
    parts = {name: traced(program, *given)[0] for name, program in parts.items()}
    parts["step"] = training.program
    times = {name: [] for name in parts}
    # The first round compiles, and is not counted.
    for number in range(-1, rounds):
        for name, program in parts.items():
            group.synchronize()
            begun = clock.wall()
            program(*given)
            took = clock.wall() - begun
            if number >= 0:
                times[name].append(took)
    return {
        "by": "differences",
        "seconds": _differences(times),
        "steps": rounds,
        "step_s": _median(times["step"]),
        "programs_s": times,
    }


def _differences(times):
    middle = {name: _median(values) for name, values in times.items()}
    local = middle.get("local_step", middle["step"])
    derived = {
        "forward": middle["forward"],
        "backward": middle["gradients"] - middle["forward"],
        "update": local - middle["gradients"],
    }
    if "local_step" in middle:
        derived["communication"] = middle["step"] - local
    return derived


def _median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
