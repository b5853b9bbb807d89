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
from paceline_worker.frameworks.jax_programs import compiled
from paceline_worker.loop import blocks

PHASES = ("data", "step")
FACT = "phases_derived"
ROUNDS = 10


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


def derive_phases(job, programs, whole, carry, batch, group):
    """The fact FACT. Trains on with `carry`, which is of no use afterwards.

    Args:
        programs: a Programs.
        whole: the compiled step.
    """
    given = batch(0)
    parts = {"forward": programs.forward(), "gradients": programs.gradients()}
    if job.workers > 1:
        parts["local_step"] = programs.step(exchange=False)
    spent = 0.0
    for name, program in parts.items():
        parts[name], took = compiled(program, carry, *given)
        spent += took["compile_s"]
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
