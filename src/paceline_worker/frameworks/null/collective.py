"""One rank of a collective of the `null` framework: bytes that mean nothing go round a real ring, or the law's time is
stamped.

`time = "law"`: times are those of `law.collective_s` and nobody waits. `time = "real"`: the bytes are moved, and
if that is faster than the law, the rest is waited for.
"""

from paceline_worker import clock, collectives, ring
from paceline_worker.frameworks.null import law as null_law
from paceline_worker.frameworks.null.training import misbehave, wait_until
from paceline_worker.loop import blocks

MOVES = {
    "all_reduce": ring.Group.all_reduce,
    "all_gather": ring.Group.all_gather,
    "reduce_scatter": ring.Group.all_gather,
    "broadcast": ring.Group.broadcast,
    "send_recv": ring.Group.ping_pong,
}


def train(job, events):
    """Meet the other ranks, take all rounds."""
    group = ring.join(
        job.rank,
        job.world_size,
        rendezvous=(job.rendezvous["address"], job.rendezvous["ports"][0]),
        own_address=job.process["address"],
        run_id=job.data["run_id"],
    )
    law = Law(job)
    # The bytes mean nothing, so there is no result that could be looked at.
    collectives.ready(job, events, null_law.VERSION, "ring", verified=False)
    if job.knobs["time"] == "law":
        stamp_rounds(job, events, law, group)
    else:
        exercises = [Moved(job, events, law, group, size) for size in job.collective["sizes"]]
        collectives.take_rounds(job, events, exercises, lambda: group.maximum(0.0))
    group.close()


class Law(object):
    """The law's time of each operation, one after the other, the same on all ranks."""

    def __init__(self, job):
        knobs = job.knobs
        self._job = job
        stream = null_law.stream_name(job.seed, job.data["run_id"], null_law.WHOLE_RUN)
        self._run = null_law.run_factor(stream, knobs["run_jitter"])
        own = null_law.stream_name(job.seed, job.data["run_id"], 0)
        self._jitter = null_law.Jitter(own, knobs["jitter"], knobs["jitter_correlation"])

    def draw_s(self, size):
        operation = self._job.collective["operation"]
        exact = null_law.collective_s(operation, size, self._job.world_size, self._job.knobs)
        return exact * self._run * self._jitter.draw()


class Moved(collectives.Exercise):
    """Bytes on a ring, for as long as the law says or longer."""

    def __init__(self, job, events, law, group, size):
        self.size = size
        self.trips = 2 if job.collective["operation"] == "send_recv" else 1
        self._move = MOVES[job.collective["operation"]]
        self._job, self._events, self._law, self._group = job, events, law, group
        self._rounds = 0

    def reset(self):
        # The fault's step is that of the study: a round.
        if self.size == self._job.collective["sizes"][0]:
            misbehave(self._job, self._events, self._rounds)
        self._rounds += 1

    def run(self):
        began = clock.wall()
        self._move(self._group, self.size)
        wait_until(began + self.trips * self._law.draw_s(self.size))


def stamp_rounds(job, events, law, group):
    """All rounds on a clock that only the law moves."""
    sizes = job.collective["sizes"]
    now, origin_unix_s = 0.0, clock.unix()
    for kind, first, count in blocks(job.warmup_steps * len(sizes), job.steps * len(sizes)):
        group.maximum(0.0)
        rows = []
        for step in range(first, first + count):
            if step % len(sizes) == 0:
                misbehave(job, events, step // len(sizes))
            size = sizes[step % len(sizes)]
            seconds = law.draw_s(size)
            rows.append((now, seconds, 0.0, size))
            now += seconds
        collectives.write_block(events, kind, first, rows, origin_unix_s)
