"""The steps of a program that is not ours: cut by what it marks, or by what hooks see, and written block by block.

Unlike `phases.Steps`, steps may be apart (an evaluation between two epochs is in no step), phases come by name and in
any order, and the time between two of them belongs to none.
"""

from paceline_worker import clock
from paceline_worker.loop import blocks
from paceline_worker.mark import Finished
from paceline_worker.phases import differences


class Recorder(object):
    """Takes down steps until there are enough, then raises Finished."""

    def __init__(self, job, events, describe, phases=()):
        """Args:
        describe: called once before the first step; gives fields of the `ready` event.
        phases: names that are known already, in the order of the step; others follow as they are met.
        """
        self.wanted = job.warmup_steps + job.steps
        self.taken = 0
        self.wait_for_device = None
        """Called before each reading of the clock, where a device computes on its own."""
        self.open_phases = []
        """Phases that are under way, the innermost last."""
        self.looping = False
        """Whether a loop over `steps` is under way."""
        self.looped = False
        """Whether there was ever such a loop: then nothing outside of one is part of a step."""
        self._events = events
        self._describe = describe
        self._warmup = job.warmup_steps
        self._blocks = blocks(job.warmup_steps, job.steps)
        self._block = next(self._blocks)
        self._rows = []
        self._names = list(phases)
        self._origin = None
        self._started = None
        # A program may tell both before its first step has begun.
        self._loss = None
        self._samples = 0
        self._counted = 0
        self._counted_steps = 0

    @property
    def finished(self):
        return self.taken >= self.wanted

    @property
    def under_way(self):
        """Whether a step has begun."""
        return self._started is not None

    @property
    def measuring(self):
        """Whether the step under way, or the next one, is a measured one."""
        return self.taken >= self._warmup

    @property
    def samples_per_step(self):
        """Samples that the measured steps reported, or None."""
        return self._counted / float(self._counted_steps) if self._counted_steps else None

    def begin(self):
        """A step begins now, unless one is under way."""
        if self._started is not None:
            return
        if self.finished:
            raise Finished(0)
        if self._origin is None:
            self._events.write("ready", setup_s=clock.wall() - clock.started, **self._describe())
            self._origin_unix_s = clock.unix()
            self._origin = clock.wall()
        self._start(self._now())

    def lap(self, name, at=None):
        """The time since the last lap was spent on a phase (None: on none)."""
        now = self._now() if at is None else max(at, self._last)
        if name is not None:
            self._phases[name] = self._phases.get(name, 0.0) + now - self._last
        self._last = now

    def loss(self, value):
        # Without the graph of its operations, which would stay in memory for as long as the block lasts.
        detach = getattr(value, "detach", None)
        self._loss = value if detach is None else detach()

    def samples(self, count):
        self._samples += count

    def end(self):
        """The step is over, and the next begins at the same moment; after a block, when that is written."""
        now, cpu = self._now(), clock.cpu()
        if self.open_phases:
            self.lap(self.open_phases[-1].name, now)
        starved = differences([self._starved, clock.starved()])[0]
        self._rows.append((self._started, now, cpu - self._cpu, self._phases, self._loss, starved))
        if self.measuring and self._samples:
            self._counted += self._samples
            self._counted_steps += 1
        self.taken += 1
        kind, first, count = self._block
        if len(self._rows) == count:
            self._write(kind, first)
            self._block = next(self._blocks, None)
            if self._block is None:
                self._started = None
                raise Finished(0)
            now = clock.wall()
        self._start(now)

    def pause(self):
        """What is under way is no step; the next begins when it is told to."""
        self._started = None

    def step(self, loss):
        """As `mark.step`."""
        if self.looping:
            raise RuntimeError("mark.step() inside mark.steps(): its loop ends the steps already; take one of the two")
        if loss is not None and self._started is not None:
            self.loss(loss)
        if self._started is None:
            self.begin()
        else:
            self.end()

    def steps(self, batches):
        """As `mark.steps`."""
        return _Loop(self, batches)

    def phase(self, name):
        """As `mark.phase`."""
        return _Phase(self, name)

    def _start(self, at):
        self._started = self._last = at
        self._cpu = clock.cpu()
        self._starved = clock.starved()
        self._phases = {}
        self._loss = None
        self._samples = 0

    def _now(self):
        if self.wait_for_device is not None:
            self.wait_for_device()
        return clock.wall()

    def _write(self, kind, first):
        rows, self._rows = self._rows, []
        for row in rows:
            self._names += [name for name in row[3] if name not in self._names]
        self._events.write(
            "steps",
            kind=kind,
            first=first,
            start_s=[row[0] - self._origin for row in rows],
            wall_s=[row[1] - row[0] for row in rows],
            cpu_s=[row[2] for row in rows],
            starved_s=[row[5] for row in rows],
            phases={name: [row[3].get(name, 0.0) for row in rows] for name in self._names},
            loss=[None if row[4] is None else float(row[4]) for row in rows],
            origin_unix_s=self._origin_unix_s,
        )


class _Phase(object):
    """A part of a step; what is inside it is taken off it. Between two loops over `steps` it is part of none."""

    def __init__(self, recorder, name):
        self.name = name
        self._recorder = recorder

    def __enter__(self):
        recorder = self._recorder
        if recorder.looping or not recorder.looped:
            recorder.begin()
            recorder.lap(recorder.open_phases[-1].name if recorder.open_phases else None)
            recorder.open_phases.append(self)
        return self

    def __exit__(self, *_error):
        recorder = self._recorder
        if self in recorder.open_phases:
            recorder.open_phases.remove(self)
            if recorder.under_way:
                recorder.lap(self.name)
        return False


class _Loop(object):
    """The batches of a loop, each of whose rounds is a step; in all else it is what it goes through."""

    def __init__(self, recorder, batches):
        self._recorder = recorder
        self._batches = batches

    def __len__(self):
        return len(self._batches)

    def __getattr__(self, name):
        # Copying and pickling ask for such names before there are any batches to ask.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __iter__(self):
        recorder = self._recorder
        recorder.looping = recorder.looped = True
        # Phases before the first loop, or around it, are no part of its steps.
        recorder.open_phases = []
        recorder.pause()
        # Making the iterator is waiting for data too: loader processes are started here.
        recorder.begin()
        try:
            for batch in self._batches:
                recorder.lap("data")
                yield batch
                recorder.end()
        finally:
            # The wait for a batch that did not come, or a round that was left, is no step.
            recorder.looping = False
            recorder.pause()
