"""One training step of JAX, and where its time goes.

The step is one program, so a measured step has two phases that are timed:

    data  the batch is at hand
    step  forward, backward, exchange and update: until loss, parameters and all else are ready

What is inside can only be derived: programs of parts of the step (forward; forward and backward; a step without
exchange; the whole) are run in turn in the same process, after all measured steps, and the differences of their times
are given. These are not times of the step's parts: the compiler fuses over their borders, and a program that ends with
the gradients must write them all. A difference may come out below zero, and is given as it is. Communication contains
waiting for slower ranks.
"""

import jax

from paceline_worker import clock
from paceline_worker.frameworks.jax_programs import compiled

PHASES = ("data", "step")
ROUNDS = 10


class Loss(object):
    """This rank's loss, read when the block is written."""

    def __init__(self, array):
        self._array = array

    def __float__(self):
        return float(self._array.addressable_data(0)[0])


def stepper(batch, program, carry, steps):
    """A function that takes step `number` and laps its phases, and one that gives the carry up to now.

    Args:
        batch: number of the step → (inputs, targets).
        program: (carry, inputs, targets) → (carry, loss), with the carry donated.
        steps: a Steps of PHASES.
    """
    lap, end = steps.lap, steps.end
    held = [carry]

    def step(number):
        inputs, targets = batch(number)
        lap()
        held[0], loss = jax.block_until_ready(program(held[0], inputs, targets))
        lap()
        end(Loss(loss))

    return step, lambda: held[0]


def derive_phases(job, programs, whole, carry, batch, group):
    """The fact `phases_derived`. Trains on with `carry`, which is of no use afterwards.

    Args:
        programs: a Programs.
        whole: the compiled step.
    """
    given = batch(0)
    parts = {"forward": programs.forward(), "gradients": programs.gradients()}
    if job.world_size > 1:
        parts["local_step"] = programs.step(exchange=False)
    spent = 0.0
    for name, program in parts.items():
        parts[name], took = compiled(program, carry, *given)
        spent += sum(took.values())
    parts["step"] = whole
    group.meet()
    times = {name: [] for name in parts}
    # The first round is not counted.
    for number in range(-1, min(ROUNDS, job.steps)):
        for name, program in parts.items():
            group.synchronize()
            begun = clock.wall()
            results = jax.block_until_ready(program(carry, *given))
            took = clock.wall() - begun
            if name.endswith("step"):
                carry = results[0]
            if number >= 0:
                times[name].append(took)
    return {
        "by": "differences",
        "seconds": _differences(times),
        "steps": len(times["step"]),
        "step_s": _median(times["step"]),
        "programs_s": times,
        "compile_s": spent,
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
