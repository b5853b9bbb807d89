"""Where the time of a step goes when the step is one program: programs of parts of it, and the differences of times.

Parts of the step, each containing the one before it, are run in turn in the same process, after all measured steps. The
differences of their median times are not times of the step's parts: compilers fuse over the borders, and a program that
ends with the gradients must write them all. A difference may come out below zero, and is given as it is. Knows no
framework.
"""

from paceline_worker import clock

MOST_ROUNDS, LEAST_ROUNDS = 10, 3


def rounds_of(steps):
    """How often each part is timed after so many measured steps: half as often, within the two limits above."""
    return min(steps, max(LEAST_ROUNDS, min(MOST_ROUNDS, steps // 2)))


def derive(parts, rounds, synchronize, compile_s):
    """The fact `phases_derived`.

    Args:
        parts: (phase, run) in order; `run` does all phases up to its own and returns when they are done. The last one
            is the whole step.
        rounds: how often each is timed; the same on all ranks.
        synchronize: returns when all ranks are here.
        compile_s: seconds that making the programs took.
    """
    times = {phase: [] for phase, _ in parts}
    # The first round is not counted.
    for number in range(-1, rounds):
        for phase, run in parts:
            synchronize()
            begun = clock.wall()
            run()
            took = clock.wall() - begun
            if number >= 0:
                times[phase].append(took)
    seconds, before = {}, 0.0
    for phase, _ in parts:
        middle = median(times[phase])
        seconds[phase] = middle - before
        before = middle
    return {
        "by": "differences",
        "seconds": seconds,
        "steps": rounds,
        "step_s": before,
        "programs_s": {"until_" + phase: taken for phase, taken in times.items()},
        "compile_s": compile_s,
    }


def median(values):
    """The middle one, or the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
