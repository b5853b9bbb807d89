"""Event simulation of a step: tasks that wait for each other, for a stream, or for their share of a link.

It uses no formula of `recurrence`, which is tested against it. It also covers what has no closed form, namely unequal
hosts and links shared by several jobs, for `predict --what-if` (see `surroundings`).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from paceline.model.equations.arrays import Floats


@dataclass(eq=False, slots=True)
class Stream:
    """Runs one task at a time, in the order in which tasks become ready."""

    busy: bool = False
    waiting: deque[Task] = field(default_factory=deque)


@dataclass(eq=False, slots=True)
class SharedLink:
    """Runs all its tasks at once: up to `width` tasks at full speed, more at an equal share of it."""

    width: float = 1.0
    under_way: dict[Task, float] = field(default_factory=dict)
    """Maps a task to the seconds it would still need alone."""
    since: float = 0.0
    version: int = 0

    @property
    def speed(self) -> float:
        """Speed of each running task; at most 1."""
        return min(1.0, self.width / len(self.under_way))


@dataclass(eq=False, slots=True)
class Task:
    """Work that takes time."""

    work_s: float
    on: Stream | SharedLink | None
    missing: int
    """Number of tasks that must end first."""
    followers: list[Task] = field(default_factory=list)
    ended_s: float | None = None


class Simulation:
    """The tasks, the event queue and the clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._events: list[tuple[float, int, Task | None, SharedLink | None, int]] = []
        self._count = itertools.count()
        self._ready: deque[Task] = deque()

    def task(self, work_s: float, after: Iterable[Task] = (), on: Stream | SharedLink | None = None) -> Task:
        """Add a task that starts when all `after` have ended and `on` is free."""
        pending = [earlier for earlier in after if earlier.ended_s is None]
        task = Task(work_s, on, len(pending))
        for earlier in pending:
            earlier.followers.append(task)
        if not pending:
            self._ready.append(task)
        return task

    def run(self) -> float:
        """Run all tasks and return when the last one ended."""
        self._start_ready()
        while self._events:
            self.now_s, _, task, link, version = heapq.heappop(self._events)
            if task is not None:
                self._end(task)
                if isinstance(task.on, Stream):
                    self._next(task.on)
            elif link is not None and version == link.version:
                self._carried(link)
            self._start_ready()
        return self.now_s

    def _start_ready(self) -> None:
        while self._ready:
            task = self._ready.popleft()
            if isinstance(task.on, Stream):
                if task.on.busy:
                    task.on.waiting.append(task)
                    continue
                task.on.busy = True
            if isinstance(task.on, SharedLink):
                self._settle(task.on)
                task.on.under_way[task] = task.work_s
                self._expect(task.on)
            else:
                self._push(self.now_s + task.work_s, task, None, 0)

    def _next(self, stream: Stream) -> None:
        stream.busy = False
        if stream.waiting:
            self._ready.appendleft(stream.waiting.popleft())

    def _end(self, task: Task) -> None:
        task.ended_s = self.now_s
        for follower in task.followers:
            follower.missing -= 1
            if follower.missing == 0:
                self._ready.append(follower)

    def _settle(self, link: SharedLink) -> None:
        """Account for the progress since the number of tasks on the link last changed."""
        if link.under_way:
            done = (self.now_s - link.since) * link.speed
            for task in link.under_way:
                link.under_way[task] -= done
        link.since = self.now_s

    def _expect(self, link: SharedLink) -> None:
        link.version += 1
        least = min(link.under_way.values(), default=None)
        if least is not None:
            self._push(self.now_s + max(0.0, least) / link.speed, None, link, link.version)

    def _carried(self, link: SharedLink) -> None:
        self._settle(link)
        least = min(link.under_way.values())
        for task in [running for running, left in link.under_way.items() if left <= least]:
            del link.under_way[task]
            self._end(task)
        self._expect(link)

    def _push(self, when: float, task: Task | None, link: SharedLink | None, version: int) -> None:
        heapq.heappush(self._events, (when, next(self._count), task, link, version))


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One data-parallel step: each message waits for all workers."""

    before_s: float
    """Seconds of compute before the last backward pass, on an ordinary worker."""
    backward_s: float
    """Seconds of that backward pass."""
    ready_s: Floats
    """Seconds from the start of the backward pass until each message is ready, in the order of sending."""
    latencies_s: Floats
    """Seconds of latency before each message is sent, which use no bandwidth."""
    carried_s: Floats
    """Seconds to send each message over unshared links."""
    slowness: tuple[float, ...] = (1.0,)
    """Factor on the compute time of each worker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """Other users of a job's links."""

    jobs: int = 1
    """Number of equal jobs, including this one, that start their steps together on the same links."""
    oversubscription: float = 1.0
    """Bandwidth of all hosts together divided by that of the network between them."""


def synchronous_step(job: Job, crowd: Crowd | None = None) -> float:
    """Seconds until all workers have computed and all messages are sent.

    Args:
        crowd: Other users of the links; None if the links are not shared.
    """
    simulation = Simulation()
    shared = SharedLink(width=1 / crowd.oversubscription) if crowd else None
    for _ in range(crowd.jobs if crowd else 1):
        # Equal jobs that start together also end together, so the last end holds for each.
        _add_job(simulation, job, Stream() if shared is None else shared)
    return simulation.run()


def _add_job(simulation: Simulation, job: Job, link: Stream | SharedLink) -> None:
    sent_by: list[list[Task]] = [[] for _ in job.ready_s]
    # The backward pass is cut where messages become ready; a last stretch may follow.
    stretches = _stretches(job)
    for factor in job.slowness:
        compute = Stream()
        last = simulation.task(job.before_s * factor, on=compute)
        for stretch, messages in stretches:
            last = simulation.task(stretch * factor, [last], compute)
            for index in messages:
                sent_by[index].append(last)
    before: list[Task] = []
    for index, (latency, cost) in enumerate(zip(job.latencies_s, job.carried_s, strict=True)):
        started = simulation.task(float(latency), [*sent_by[index], *before])
        before = [simulation.task(float(cost), [started], link)]


def _stretches(job: Job) -> list[tuple[float, list[int]]]:
    """(seconds, messages that are then ready) for each stretch of the backward pass."""
    stretches, at = [], 0.0
    for ready in np.unique(job.ready_s):
        messages = [index for index, when in enumerate(job.ready_s) if when == ready]
        stretches.append((float(ready) - at, messages))
        at = float(ready)
    stretches.append((max(0.0, job.backward_s - at), []))
    return stretches
