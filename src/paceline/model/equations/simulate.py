"""A step as events: tasks that wait for each other, for a stream, or for their share of a link.

Knows no formula of `recurrence`, and is what that is tested against. Also for what has no closed form: hosts that
differ, links that several jobs share. `surroundings` asks it for `predict --what-if`.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from paceline.model.equations.step import Floats, Messages, Profile


@dataclass(eq=False, slots=True)
class Stream:
    """Does one task at a time, in the order in which they become ready."""

    busy: bool = False
    waiting: deque[Task] = field(default_factory=deque)


@dataclass(eq=False, slots=True)
class SharedLink:
    """Carries all its tasks at once: as many as its width at full speed, more at an equal share of it."""

    width: float = 1.0
    under_way: dict[Task, float] = field(default_factory=dict)
    """Task → seconds that it would still take alone."""
    since: float = 0.0
    version: int = 0

    @property
    def speed(self) -> float:
        """Of each task that is under way; alone it has at most 1."""
        return min(1.0, self.width / len(self.under_way))


@dataclass(eq=False, slots=True)
class Task:
    """Something that takes time."""

    work_s: float
    on: Stream | SharedLink | None
    missing: int
    """Tasks that have to end before."""
    followers: list[Task] = field(default_factory=list)
    ended_s: float | None = None


class Simulation:
    """Tasks and the clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._events: list[tuple[float, int, Task | None, SharedLink | None, int]] = []
        self._count = itertools.count()
        self._ready: deque[Task] = deque()

    def task(self, work_s: float, after: Iterable[Task] = (), on: Stream | SharedLink | None = None) -> Task:
        """A task that starts when all `after` have ended and `on` has time for it."""
        before = [one for one in after if one.ended_s is None]
        made = Task(work_s, on, len(before))
        for one in before:
            one.followers.append(made)
        if not before:
            self._ready.append(made)
        return made

    def run(self) -> float:
        """Let all happen; when the last task ended."""
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
        """What was carried since the number of tasks on it last changed."""
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
        for task in [one for one, left in link.under_way.items() if left <= least]:
            del link.under_way[task]
            self._end(task)
        self._expect(link)

    def _push(self, when: float, task: Task | None, link: SharedLink | None, version: int) -> None:
        heapq.heappush(self._events, (when, next(self._count), task, link, version))


@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """Who else wants the links of a job."""

    jobs: int = 1
    """Equal jobs, this one included, that begin their steps together over the same links."""
    oversubscription: float = 1.0
    """What all hosts together can send, over what the network between them can carry."""


def synchronous_step(
    profile: Profile,
    messages: Messages,
    costs_s: Floats,
    slowness: Sequence[float] = (1.0,),
    *,
    latencies_s: Floats | None = None,
    crowd: Crowd | None = None,
) -> float:
    """Seconds of one data-parallel step among these workers: each message waits for all of them.

    Args:
        costs_s: seconds that each message is carried for, over links that nobody else uses.
        slowness: factor on the computing of each worker.
        latencies_s: seconds of each message before it is carried, which takes nothing from a link; None: none.
        crowd: who else uses the links; None: nobody.
    """
    simulation = Simulation()
    starts = np.zeros_like(costs_s) if latencies_s is None else latencies_s
    shared = SharedLink(width=1 / crowd.oversubscription) if crowd else None
    for _ in range(crowd.jobs if crowd else 1):
        # Of several equal jobs that begin together all end together: the last end is that of each.
        _add_job(simulation, (profile, messages), (starts, costs_s), slowness, Stream() if shared is None else shared)
    done = simulation.run()
    fed = profile.input_s + profile.copy_s
    busy = done + profile.update_s * max(slowness)
    return max(busy, fed) if profile.prefetch else busy + fed


def _add_job(
    simulation: Simulation,
    step: tuple[Profile, Messages],
    costs: tuple[Floats, Floats],
    slowness: Sequence[float],
    link: Stream | SharedLink,
) -> None:
    profile, messages = step
    sent_by: list[list[Task]] = [[] for _ in messages.sizes]
    # A stretch of the backward pass ends where a message becomes ready, or after it, where the computing goes on.
    stretches = _stretches(profile, messages)
    for factor in slowness:
        compute = Stream()
        last = simulation.task((profile.overhead_s + profile.forward_total_s) * factor, on=compute)
        for stretch, whose in stretches:
            last = simulation.task(stretch * factor, [last], compute)
            for index in whose:
                sent_by[index].append(last)
    before: list[Task] = []
    for index, (latency, cost) in enumerate(zip(*costs, strict=True)):
        started = simulation.task(float(latency), [*sent_by[index], *before])
        before = [simulation.task(float(cost), [started], link)]


def _stretches(profile: Profile, messages: Messages) -> list[tuple[float, list[int]]]:
    """(seconds, messages that are ready after it) of each piece of the backward pass."""
    stretches, at = [], 0.0
    for ready in np.unique(messages.ready_s):
        whose = [index for index, when in enumerate(messages.ready_s) if when == ready]
        stretches.append((float(ready) - at, whose))
        at = float(ready)
    stretches.append((max(0.0, profile.backward_total_s - at), []))
    return stretches
