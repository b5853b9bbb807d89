"""Wait for the processes of a run without polling: blocked until one ends, a meter tick, or the time limit.

One waiting thread a process costs nothing while it waits, works on every system, and leaves the cores to the ranks.
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
"""After the first rank fails: time for the others to fail too and have their last word."""


@dataclass(slots=True)
class Ending:
    """How the processes ended."""

    cause: str = "finished"
    """"finished", "failed", "time" or "memory"."""
    process: str | None = None
    """Name of the process behind a "memory" ending, or of the first to fail."""
    reason: str = ""
    exit_codes: dict[int, int] = field(default_factory=dict)
    """Rank → exit code, for those that ended by themselves."""
    exit_times: dict[int, float] = field(default_factory=dict)
    """Rank → Unix time at which its end was noticed."""


def supervise(running: Sequence[Running], meter: Meter, *, time_limit_s: float, memory_limit_bytes: float) -> Ending:
    """Block until the run is over, one way or another. Ends no process itself: the site does, for sure."""
    exits: queue.SimpleQueue[tuple[Running, int]] = queue.SimpleQueue()
    for one in running:
        threading.Thread(target=_wait, args=(one, exits), daemon=True).start()
    ranks = {one.process.rank for one in running if one.process.rank is not None}
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
            one, code = exits.get(timeout=max(0.0, min(next_tick, deadline) - now))
        except queue.Empty:
            if time.monotonic() < next_tick:
                continue
            next_tick = time.monotonic() + PERIOD_S
            if hog := _over(meter.sample(), memory_limit_bytes):
                ending.cause, ending.process, ending.reason = "memory", *hog
                break
            continue
        _note_exit(ending, one, code)
        if ending.cause == "failed":
            deadline = min(deadline, time.monotonic() + PEERS_GRACE_S)
    meter.sample()
    return ending


def _wait(one: Running, exits: queue.SimpleQueue[tuple[Running, int]]) -> None:
    exits.put((one, one.wait()))


def _note_exit(ending: Ending, one: Running, code: int) -> None:
    name, rank = one.process.name, one.process.rank
    if rank is not None:
        ending.exit_codes[rank] = code
        ending.exit_times[rank] = time.time()
    # A server or scheduler that leaves on its own accord, with 0, is its framework's way to say goodbye.
    if code != 0 and ending.cause == "finished":
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        ending.cause, ending.process, ending.reason = "failed", name, f"{name} {how}"


def _over(used: dict[str, float], limit: float) -> tuple[str, str] | None:
    for name, rss in used.items():
        if rss > limit:
            return name, f"{name} holds {rss / 2**20:.0f} MiB, above its limit of {limit / 2**20:.0f} MiB"
    return None
