"""For training programs of your own: say where steps and their phases begin and end.

    from paceline_worker import mark

    for inputs, targets in mark.steps(loader):       # one round of the loop is one step
        with mark.phase("forward"):
            loss = ...
        mark.loss(loss)
        mark.samples(len(inputs))

or, where the loop is not a `for` over batches, `mark.step()` at the end of each step.

Started without Paceline all of this does nothing: `steps` gives back what it was given, the others return at once.
Started by Paceline the program ends, with exit code 0, as soon as it has taken the steps that were asked for:
`Finished` is raised, a `SystemExit`, so `finally` blocks run and `except Exception` does not stop it.
"""

import os


class Finished(SystemExit):
    """All steps that were asked for are taken; the program may end here."""


class _Nothing(object):
    """A phase that nobody measures."""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False


_NOTHING = _Nothing()
_recorder = None


def steps(batches):
    """Go through the batches; each round of the loop is one step, and waiting for its batch is the phase "data"."""
    return batches if _recorder is None else _recorder.steps(batches)


def step(loss=None):
    """A step is over, and the next begins. The first call only starts the clock, unless a phase came before it."""
    if _recorder is not None:
        _recorder.step(loss)


def phase(name):
    """`with phase("forward"):` this part of the step. A phase inside another is not counted to the outer one.

    In a program that loops over `steps`, a phase outside of such a loop is part of no step, and nobody measures it.
    """
    return _NOTHING if _recorder is None else _recorder.phase(name)


def loss(value):
    """The loss of this step: a number, or a tensor, which is read when times are written and not before."""
    if _recorder is not None:
        _recorder.loss(value)


def samples(count):
    """So many samples were trained in this step; calls in one step add up."""
    if _recorder is not None:
        _recorder.samples(count)


def active():
    """Whether Paceline measures this program."""
    return _recorder is not None


def attach(recorder):
    """For the worker: record what is marked from now on. Children that are forked record nothing."""
    global _recorder  # noqa: PLW0603  there is one program in a process
    _recorder = recorder
    if hasattr(os, "register_at_fork"):  # Python 3.7
        os.register_at_fork(after_in_child=_detach)


def _detach():
    global _recorder  # noqa: PLW0603
    _recorder = None
