"""One rank of the `null` framework: trains nothing, takes its time by the law of `law`.

`time = "law"`: the ranks meet at every step and agree on the slowest, but nobody waits; the times are stamped
on a clock that only the law moves. `time = "real"`: phases are waited for, the message goes round the ring.
"""

import os
import signal
import threading
import time

from paceline_worker import clock, ring
from paceline_worker.frameworks.null import law as null_law
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps

SPIN_S = 2e-4
"""The end of every wait is spun: a sleep alone ends 50 to 150 µs late on Linux. Costs 1 ms of CPU a step."""

FAULT_PIECE_BYTES = 16 << 20
PAGE_BYTES = 4096
EXIT_SILENT = 7


def train(job, events):
    """Meet the other ranks, take all steps, say how long the exchange took."""
    parameters = null_law.num_parameters(job.graph)
    law = null_law.Law(job.knobs, job.world_size, job.batch, parameters * null_law.BYTES_PER_PARAMETER)
    group = ring.join(
        job.rank,
        job.world_size,
        rendezvous=(job.rendezvous["address"], job.rendezvous["ports"][0]),
        own_address=job.process["address"],
        run_id=job.data["run_id"],
    )
    steps = Steps(null_law.PHASES)
    pace = (LawPace if job.knobs["time"] == "law" else RealPace)(job, law, group, steps)

    def step(number):
        misbehave(job, events, number)
        pace.step(number)

    events.write(
        "ready",
        framework_version=null_law.VERSION,
        parameters=parameters,
        setup_s=clock.wall() - clock.started,
        facts={
            "message_bytes": law.message_bytes,
            "buckets": law.num_buckets,
            "law_exchange_s": law.exchange_s,
            # Real time without burning sleeps through its compute phases: no sign of a starved worker.
            "waits": job.knobs["time"] == "real" and not job.knobs["burn"],
        },
    )
    take_steps(job, events, steps, step, lambda: group.maximum(0.0), pace.begin_block)
    events.write("facts", facts={"exchange_s": pace.mean_exchange_s(job.warmup_steps)})
    # Not in a `finally`: a rank that fails has its last word before its peers notice that the connection closed.
    group.close()


class Draws(object):
    """The compute times of this rank, drawn step by step."""

    def __init__(self, job, law):
        knobs = job.knobs
        own, shared = (
            null_law.stream_name(job.seed, job.data["run_id"], whose) for whose in (job.rank, null_law.WHOLE_RUN)
        )
        self._law, self._rank = law, job.rank
        self._run = null_law.run_factor(shared, knobs["run_jitter"])
        self._jitter = null_law.Jitter(own, knobs["jitter"], knobs["jitter_correlation"])

    def compute_s(self):
        return self._law.compute_s(self._rank, self._run * self._jitter.draw())


class LawPace(object):
    """Stamps the law's times on a clock of its own."""

    def __init__(self, job, law, group, steps):
        self._law, self._group, self._steps = law, group, steps
        self._draws = Draws(job, law)
        self._now = self._cpu = self._starved = 0.0
        self._rest = None

    def begin_block(self):
        self._steps.open(at=self._now, cpu_at=self._cpu, starved_at=self._starved)

    def step(self, number):
        compute_s = self._draws.compute_s()
        times = self._law.step(compute_s, self._group.maximum(compute_s), self._rest)
        for duration in times:
            self._now += duration
            self._steps.lap_at(self._now)
        self._rest = sum(times) - times.data
        starved_s = self._law.starved_s(compute_s)
        self._starved += starved_s
        self._cpu += compute_s - starved_s + times.update + times.overhead
        self._steps.end(null_law.loss(number), cpu_at=self._cpu, starved_at=self._starved)

    def mean_exchange_s(self, _warmup_steps):
        return self._law.exchange_s


class RealPace(object):
    """Waits for each phase, and moves the message's bytes while the law's exchange lasts (or longer)."""

    def __init__(self, job, law, group, steps):
        self._law, self._group, self._steps = law, group, steps
        self._draws = Draws(job, law)
        self._overlap = job.knobs["overlap"] if group.world_size > 1 else 0.0
        self._compute_until = burn_until if job.knobs["burn"] else wait_until
        self._rest = None
        self._starved = 0.0
        self._exchanges = []

    def begin_block(self):
        self._steps.open(starved_at=self._starved)

    def step(self, number):
        law, steps = self._law, self._steps
        compute_s = self._draws.compute_s()
        # Phases end at absolute times, so that a late wake-up shortens the next wait instead of adding up.
        data_end = clock.wall() + law.data_s(self._rest)
        forward_end = data_end + law.forward_s(compute_s)
        backward_end = data_end + compute_s
        wait_until(data_end)
        steps.lap()
        rest_began = clock.wall()
        self._compute_until(forward_end)
        steps.lap()
        finish_exchange = self._start_exchange(backward_end, backward_end - forward_end)
        self._compute_until(backward_end)
        steps.lap()
        finish_exchange()
        steps.lap()
        update_end = clock.wall() + law.knobs["update_s"]
        wait_until(update_end)
        steps.lap()
        wait_until(update_end + law.knobs["overhead_s"])
        steps.lap()
        # Nobody really crowds the cores: what the law says of it is told, as if somebody did.
        self._starved += law.starved_s(compute_s)
        steps.end(null_law.loss(number), starved_at=self._starved)
        self._rest = clock.wall() - rest_began

    def mean_exchange_s(self, warmup_steps):
        measured = self._exchanges[warmup_steps:]
        return sum(measured) / len(measured)

    def _start_exchange(self, backward_end, backward_s):
        """Begin the exchange when the law allows it; returns what the communication phase has to call."""
        if self._overlap == 0.0:
            return self._exchange
        self._compute_until(backward_end - self._overlap * backward_s)
        background = Background(self._exchange)

        def finish():
            background.finish()
            # The exchange may be over while the slowest rank still computes; the last gradient is its own.
            self._group.maximum(0.0)

        return finish

    def _exchange(self):
        self._group.maximum(0.0)
        began = clock.wall()
        if self._group.world_size > 1:
            for size in self._law.bucket_sizes():
                self._group.all_reduce(size)
        wait_until(began + self._law.exchange_s)
        self._exchanges.append(clock.wall() - began)


class Background(object):
    """A call in a thread of its own, whose exception comes out where it is waited for."""

    def __init__(self, call):
        self._call, self._error = call, None
        self._thread = threading.Thread(target=self._run)
        self._thread.daemon = True
        self._thread.start()

    def _run(self):
        try:
            self._call()
        except Exception as error:
            self._error = error

    def finish(self):
        self._thread.join()
        if self._error is not None:
            raise self._error


def wait_until(moment):
    """Sleep, then spin for the last bit."""
    left = moment - clock.wall() - SPIN_S
    if left > 0:
        time.sleep(left)
    burn_until(moment)


def burn_until(moment):
    """Keep this core busy."""
    while clock.wall() < moment:
        pass


def misbehave(job, events, number):
    """The fault that the study asked for, if this is the rank and the step."""
    knobs = job.knobs
    fault = knobs["fault"]
    if fault == "none" or (job.rank, number) != (knobs["fault_rank"], knobs["fault_step"]):
        return
    what = "{} asked for by the study on rank {} at step {}".format(fault, job.rank, number)
    if fault == "crash":
        raise RuntimeError(what)
    if fault == "exit":
        os._exit(EXIT_SILENT)
    if fault == "hang-hard":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    held = []
    if fault == "memory":
        held = hold_memory(int(knobs["fault_bytes"]))
        what += ", holds {} bytes".format(sum(map(len, held)))
    events.write("note", message=what)
    while True:
        signal.pause()


def hold_memory(count):
    """Pieces of memory of that size in all, each page of them touched so that it is really taken."""
    held = []
    while count > 0:
        piece = bytearray(min(count, FAULT_PIECE_BYTES))
        piece[::PAGE_BYTES] = b"\x01" * len(piece[::PAGE_BYTES])
        held.append(piece)
        count -= len(piece)
    return held
