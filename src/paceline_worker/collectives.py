"""The loop in which every framework exercises a collective by itself: all sizes in turn, each apart from the others.

Before each operation the ranks meet, outside the timed part. What is timed is the call until the result is there, on
every rank. In the first round each result is looked at, and a wrong one ends the run. Knows no framework.
"""

from paceline_worker import clock
from paceline_worker.loop import blocks

PHASE = "communication"


class WrongResultError(RuntimeError):
    """An operation gave something else than it promises."""


class Exercise(object):
    """One operation with a message of one size, as a framework does it."""

    size = None
    """Bytes of the message."""
    trips = 1
    """Times that the message goes over the link in one `run`: 2 for a ping-pong, whose time is halved."""

    def reset(self):
        """Make the message again, where an operation writes over it."""

    def run(self):
        """Do it; returns when the result is there. Only this is timed."""
        raise NotImplementedError

    def result(self):
        """(what came out, what should have): numbers that are equal when all is well; None where none can be had."""
        return


def expected_sum(world_size):
    """Of rank + 1 over all ranks."""
    return world_size * (world_size + 1) / 2.0


def take_rounds(job, events, exercises, meet):
    """Every round takes all exercises once; the job's steps are rounds. Writes each block's times after it.

    Args:
        exercises: one for each size.
        meet: returns when all ranks are here.
    """
    number_of_sizes = len(exercises)
    origin = origin_unix_s = None
    for kind, first, count in blocks(job.warmup_steps * number_of_sizes, job.steps * number_of_sizes):
        rows = []
        for step in range(first, first + count):
            exercise = exercises[step % number_of_sizes]
            exercise.reset()
            meet()
            cpu, began = clock.cpu(), clock.wall()
            exercise.run()
            ended, cpu_ended = clock.wall(), clock.cpu()
            if origin is None:
                origin, origin_unix_s = began, clock.unix() - (clock.wall() - began)
            rows.append(
                (began - origin, (ended - began) / exercise.trips, (cpu_ended - cpu) / exercise.trips, exercise.size)
            )
            if step < number_of_sizes:
                verify(job, exercise)
        write_block(events, kind, first, rows, origin_unix_s)


def write_block(events, kind, first, rows, origin_unix_s):
    """Rows of (start, wall, CPU seconds, bytes)."""
    walls = [row[1] for row in rows]
    events.write(
        "steps",
        kind=kind,
        first=first,
        start_s=[row[0] for row in rows],
        wall_s=walls,
        cpu_s=[row[2] for row in rows],
        phases={PHASE: walls},
        loss=[None] * len(rows),
        bytes=[row[3] for row in rows],
        origin_unix_s=origin_unix_s,
    )


def verify(job, exercise):
    """Look at the result. Raises: WrongResultError: it is wrong."""
    result = exercise.result()
    if result is None or result[0] == result[1]:
        return
    message = "{} of {} bytes gave {} on rank {}, and should have given {}"
    raise WrongResultError(message.format(job.collective["operation"], exercise.size, result[0], job.rank, result[1]))


def ready(job, events, version, library, verified=True, **facts):
    """Say that the first operation is about to start."""
    events.write(
        "ready",
        framework_version=version,
        parameters=None,
        setup_s=clock.wall() - clock.started,
        # A rank that waits for its peers uses no core, and that is no sign of a starved one.
        facts=dict(facts, library=library, operation=job.collective["operation"], verified=verified, waits=True),
    )
