"""Waits for the processes of a run without polling: until one ends, the meter is due, or the time limit is reached.

One waiting thread per process costs nothing while it waits, works on every system, and leaves the cores to the ranks.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.run.meter import PERIOD_S, Meter
from paceline.sites import Running

PEERS_GRACE_S = 5.0
"""Time for the other ranks to fail too and write their last word, after the first has failed."""


@dataclass(slots=True)
class Ending:
    """How the processes ended."""

    cause: str = "finished"
    """"finished", "failed", "time" or "memory"."""
    process: str | None = None
    """Name of the process that held too much memory, or of the first that failed."""
    reason: str = ""
    exit_codes: dict[int, int] = field(default_factory=dict)
    """Rank → exit code, for ranks that ended by themselves."""
    exit_times: dict[int, float] = field(default_factory=dict)
    """Rank → Unix time at which its end was noticed."""


def supervise(running: Sequence[Running], meter: Meter, *, time_limit_s: float, memory_limit_bytes: float) -> Ending:
    """Block until the run is over. Ends no process itself: the site does."""
    exits: queue.SimpleQueue[tuple[Running, int]] = queue.SimpleQueue()
    for started in running:
        threading.Thread(target=_wait, args=(started, exits), daemon=True).start()
    ranks = {started.process.rank for started in running if started.process.rank is not None}
    ending = Ending()
    deadline = time.monotonic() + time_limit_s
    next_tick = time.monotonic()
    while ranks - ending.exit_codes.keys():
        now = time.monotonic()
        if now >= deadline:
            if ending.cause == "finished":
                ending.cause, ending.reason = "time", f"not done after the time limit of {time_limit_s:g} s"
            break
        try:
            ended, code = exits.get(timeout=max(0.0, min(next_tick, deadline) - now))
        except queue.Empty:
            if time.monotonic() < next_tick:
                continue
            next_tick = time.monotonic() + PERIOD_S
            if hog := _over(meter.sample(), memory_limit_bytes):
                ending.cause, ending.process, ending.reason = "memory", *hog
                break
            continue
        _note_exit(ending, ended, code)
        if ending.cause == "failed":
            deadline = min(deadline, time.monotonic() + PEERS_GRACE_S)
    meter.sample()
    return ending


def _wait(running: Running, exits: queue.SimpleQueue[tuple[Running, int]]) -> None:
    exits.put((running, running.wait()))


def _note_exit(ending: Ending, ended: Running, code: int) -> None:
    name, rank = ended.process.name, ended.process.rank
    if rank is not None:
        ending.exit_codes[rank] = code
        ending.exit_times[rank] = time.time()
    # Servers and schedulers of some frameworks end by themselves, with 0, when their work is done.
    if code != 0 and ending.cause == "finished":
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        ending.cause, ending.process, ending.reason = "failed", name, f"{name} {how}"


def _over(used: dict[str, float], limit: float) -> tuple[str, str] | None:
    for name, rss in used.items():
        if rss > limit:
            return name, f"{name} holds {rss / 2**20:.0f} MiB, above its limit of {limit / 2**20:.0f} MiB"
    return None
