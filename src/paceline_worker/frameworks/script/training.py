"""How one rank runs a training program of the user's: as `python train.py` would, with its steps taken down.

The program marks its steps (`paceline_worker.mark`), or trains with PyTorch, whose hooks then tell where they are
(`torch.watch`). It runs in this process, so a crash, an end by the host and the last word are as everywhere.
"""

import os
import platform
import re
import runpy
import sys

from paceline_worker import mark
from paceline_worker.after_import import after_import
from paceline_worker.recorder import Recorder

IMPORTS_MARK = re.compile(r"^\s*(from|import)\s+paceline_worker\b", re.MULTILINE)


WATCHED = ("data", "forward", "backward", "communication", "update")
"""Phases that PyTorch's hooks tell apart: see `torch.watch`."""


class ScriptError(Exception):
    """The program did not do what was asked of it; the message says what to change."""


def train(job, events):
    """Run the program until it has taken all steps."""
    program = job.program
    watch = []
    hooks = job.knobs["hooks"]
    if hooks == "auto":
        hooks = "none" if _marks(program) else "torch"
    recorder = Recorder(job, events, lambda: _description(watch), WATCHED if hooks == "torch" else ())

    def watch_torch():
        # Imports PyTorch, so not before the program does: it may have variables to set first.
        from paceline_worker.frameworks.torch import watch as torch_watch

        watch.append(torch_watch.Watch(job, recorder, take_steps=hooks == "torch"))

    after_import("torch", watch_torch)
    mark.attach(recorder)
    try:
        _run(program)
    except Exception as error:
        missing = _missing_file(error, program)
        if missing is not None:
            events.write("facts", facts={"missing_file": missing})
        raise
    if not recorder.finished:
        raise ScriptError(_too_few(program["script"], recorder, hooks, bool(watch)))
    facts = {"samples_per_step": recorder.samples_per_step, "samples_from": "mark"}
    for watcher in watch:
        facts.update(watcher.late_facts())
    events.write("facts", facts=facts)
    for watcher in watch:
        watcher.leave()


def _run(program):
    """As the interpreter itself would: its folder first on the path, its name `__main__`."""
    path = os.path.join(program["folder"], program["script"])
    _enter(program["working_directory"] or program["folder"])
    sys.argv = [path] + program["arguments"]
    sys.path.insert(0, program["folder"])
    try:
        runpy.run_path(path, run_name="__main__")
    except mark.Finished:
        pass
    except SystemExit as error:
        if error.code not in (None, 0):
            raise ScriptError("{} ended itself with exit code {}".format(program["script"], error.code)) from None


def _enter(folder):
    try:
        os.chdir(folder)
    except OSError as error:
        raise ScriptError("working_directory {} on {}: {}".format(folder, platform.node(), error.strerror)) from None


def _missing_file(error, program):
    """The file that was not found, relative to the program's folder; None: it was another failure, or elsewhere."""
    while error is not None:
        if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
            # A relative name means a file beside the script only where the script runs there.
            if not os.path.isabs(error.filename) and program["working_directory"]:
                return None
            return os.path.relpath(os.path.realpath(error.filename), os.path.realpath(program["folder"]))
        error = error.__cause__ or error.__context__
    return None


def _marks(program):
    """Whether any file of the program imports this package."""
    for name in program["files"]:
        if name.endswith(".py"):
            with open(os.path.join(program["folder"], name), encoding="utf-8", errors="replace") as file:
                if IMPORTS_MARK.search(file.read()):
                    return True
    return False


def _description(watch):
    facts = {"dropout": "the script's own", "framework_flops": None, "layout": None}
    description = {"framework_version": "Python " + platform.python_version(), "parameters": None, "facts": facts}
    for watcher in watch:
        described = watcher.describe()
        facts.update(described.pop("facts"))
        description.update(described)
    return description


def _too_few(script, recorder, hooks, torch_seen):
    if recorder.taken:
        return "{} took {} of {} steps: lower measure.steps or measure.warmup_steps, or let it train longer".format(
            script, recorder.taken, recorder.wanted
        )
    if hooks == "torch" and not torch_seen:
        return "{} marked no step and did not import PyTorch: mark its steps (from paceline_worker import mark)".format(
            script
        )
    if hooks == "torch":
        return "{} made no step of an optimizer of PyTorch: mark its steps (from paceline_worker import mark)".format(
            script
        )
    return "{} marked no step: put mark.step() at the end of its loop, or loop over mark.steps(...)".format(script)
