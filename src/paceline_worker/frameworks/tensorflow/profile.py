"""Where the time of a `tf.function` goes, by the names of its operators in a profile.

Graph optimizers and oneDNN replace operators but keep their names, and a name begins with the scopes it was written in.
The time of a step is cut wherever an operator begins or ends. A piece belongs to the phases of the operators that run
in it, in equal parts, and to communication only while nothing computes: what is hidden behind computing costs nothing.
While no operator runs, it is overhead: calling the function, and finding out which operator is next.
"""

import glob
import os
import shutil
from collections import Counter

import tensorflow as tf

from paceline_worker import clock
from paceline_worker.frameworks.tensorflow.programs import BACKWARD, EXCHANGE, FORWARD, UPDATE

PHASE_OF_SCOPE = {FORWARD: "forward", BACKWARD: "backward", EXCHANGE: "communication", UPDATE: "update"}
STEP = "paceline_step"


def phases_by_operators(job, step, rounds):
    """The fact `phases_derived`: `step` is called `rounds` times under TensorFlow's profiler."""
    plain = [_timed(step) for _ in range(rounds)]
    folder = os.path.join(job.folder, "profile.{}".format(job.rank))
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(folder, options=options)
    for number in range(rounds):
        with tf.profiler.experimental.Trace(STEP, step_num=number):
            step()
    tf.profiler.experimental.stop()
    steps, operators = _read(folder)
    shutil.rmtree(folder)
    phases = ["forward", "backward", "update"] + ["communication"] * (job.workers > 1)
    return derived(operators, [end - begin for begin, end in steps], plain, phases, "overhead")


def derived(operators, profiled, plain, phases, rest):
    """The fact `phases_derived`.

    Args:
        operators: (begin, end, phase) of all that ran in the profiled steps.
        profiled: seconds of each profiled step.
        plain: seconds of each of as many steps beside them.
        phases: those that are told from operators.
        rest: the phase that has all other time.
    """
    seconds = _divided(operators)
    whole = sum(profiled)
    seconds[rest] = whole - sum(seconds[phase] for phase in phases)
    # The profiler slows a step down: shares of it are what is known, and the plain step is what they are shares of.
    step_s = sum(plain) / len(plain)
    return {
        "by": "operators",
        "seconds": {phase: seconds[phase] / whole * step_s for phase in [*phases, rest]},
        "steps": len(plain),
        "step_s": step_s,
        "profiled_step_s": whole / len(profiled),
    }


def _timed(step):
    begun = clock.wall()
    step()
    return clock.wall() - begun


def _read(folder):
    """([(begin, end)] of the steps, [(begin, end, phase)] of the operators), in seconds."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # there is no public door

    (path,) = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.xplane.pb"))
    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    steps, operators = [], []
    for plane in space.planes:
        names = {key: metadata.name for key, metadata in plane.event_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                name = names[event.metadata_id]
                begin = line.timestamp_ns * 1e-9 + event.offset_ps * 1e-12
                end = begin + event.duration_ps * 1e-12
                if name.startswith(STEP):
                    steps.append((begin, end))
                elif (phase := phase_of(name)) is not None:
                    operators.append((begin, end, phase))
    return steps, operators


def phase_of(name):
    """The phase of an operator "scope/…/name:Kind"; None for events that are no operators of a step.

    Gradients have a name of their own before the scope of what they belong to.
    """
    path, _, kind = name.rpartition(":")
    if not path or " " in kind or "::" in name:
        return None
    if kind.startswith(("Collective", "_Send", "_Recv")):
        return "communication"
    scopes = path.split("/")
    if "gradient_tape" in scopes:
        return "backward"
    return next((PHASE_OF_SCOPE[scope] for scope in scopes if scope in PHASE_OF_SCOPE), None)


def _divided(operators):
    """Phase → seconds, with every moment counted once."""
    borders = sorted(
        [(begin, 1, phase) for begin, _, phase in operators] + [(end, -1, phase) for _, end, phase in operators],
        key=lambda border: border[0],
    )
    seconds, running, before = Counter(), Counter(), None
    for at, change, phase in borders:
        computing = {name: count for name, count in running.items() if count > 0 and name != "communication"}
        busy = computing or {name: count for name, count in running.items() if count > 0}
        for name, count in busy.items():
            seconds[name] += (at - before) * count / sum(busy.values())
        running[phase] += change
        before = at
    return seconds
