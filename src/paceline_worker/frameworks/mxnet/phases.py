"""One training step of MXNet, and where its time goes.

Operators are handed to an engine that runs them when their inputs are ready: gradients of the last layers travel while
those of the first are still computed. To wait anywhere inside the step would take that away, so a measured step has
two phases that are timed:

    data  the batch is at hand
    step  forward, backward, exchange and update: until the engine has nothing left to do

What is inside is timed after all measured steps, in steps that do wait after each of their parts.
"""

import mxnet as mx
from mxnet import autograd

from paceline_worker import clock
from paceline_worker.frameworks.differences import median, rounds_of

PHASES = ("data", "step")
HOW = (
    "median times of steps that wait for the engine after each part, taken in turn with whole ones after the"
    " measured steps; nothing overlaps in them, so they may add up to more than a step;"
    " communication contains waiting for slower ranks"
)


class Loss(object):
    """The mean over this rank's samples, read when the block is written."""

    def __init__(self, losses):
        self._losses = losses

    def __float__(self):
        return sum(float(losses.asnumpy().mean(dtype="float64")) for losses in self._losses) / len(self._losses)


class Step(object):
    """What a step does, part by part."""

    def __init__(self, objective, trainer, group, samples):
        self._objective = objective
        self._trainer = trainer
        self._group = group
        self._samples = samples
        """Of all workers in a step: what gradients are divided by."""

    def forward(self, batches):
        """The samples' losses on each device."""
        with autograd.record():
            return [self._objective(inputs, targets) for inputs, targets in batches]

    def backward(self, losses):
        autograd.backward(losses)

    def finish(self):
        """Exchange and update."""
        self._group.began()
        self._trainer.step(self._samples)

    def exchange(self):
        """Not where the store updates."""
        self._trainer.allreduce_grads()

    def update(self):
        self._trainer.update(self._samples)

    def __call__(self, batches):
        losses = self.forward(batches)
        self.backward(losses)
        self.finish()
        return losses


def stepper(source, step, steps, before_update=None):
    """A function that takes step `number` and laps its phases.

    Args:
        source: number of the step → batches.
        step: a Step.
        steps: a Steps of PHASES.
        before_update: called with the number of the step, with all gradients computed and not yet exchanged.
    """
    lap, end = steps.lap, steps.end

    def take(number):
        batches = source(number)
        lap()
        losses = step.forward(batches)
        step.backward(losses)
        if before_update is not None:
            before_update(number)
        step.finish()
        mx.nd.waitall()
        lap()
        end(Loss(losses))

    return take


def derive_phases(job, step, batches, group, store_updates):
    """The fact `phases_derived`. Trains on.

    Args:
        store_updates: whether the key-value store applies the optimizer.
    """
    timed = {"forward": lambda _: step.forward(batches), "backward": step.backward}
    if store_updates:
        timed["communication"] = lambda _: step.finish()
    else:
        if job.workers > 1:
            timed["communication"] = lambda _: step.exchange()
        timed["update"] = lambda _: step.update()
    times = {name: [] for name in list(timed) + ["step"]}
    # The first round is not counted.
    for number in range(-1, rounds_of(job.steps)):
        group.synchronize()
        at, passed, took = clock.wall(), None, {}
        for name, part in timed.items():
            passed = part(passed)
            mx.nd.waitall()
            took[name], at = clock.wall() - at, clock.wall()
        group.synchronize()
        at = clock.wall()
        step(batches)
        mx.nd.waitall()
        took["step"] = clock.wall() - at
        if number >= 0:
            for name, value in took.items():
                times[name].append(value)
    seconds = {name: median(times[name]) for name in timed}
    return {
        "by": "timers",
        "how": HOW,
        "seconds": seconds,
        "steps": len(times["step"]),
        "step_s": median(times["step"]),
        "programs_s": times,
        "compile_s": 0.0,
    }
