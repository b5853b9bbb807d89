"""Cores of a host that its processes may use."""

from __future__ import annotations

import os


def usable_cores() -> tuple[int, ...]:
    """Logical cores that this process may use, which may be fewer than there are in a container or a batch system.

    They are in an order in which every physical core is given out once before any gets a second rank: two ranks on the
    two threads of one core would take turns, and look like a framework that does not scale.
    """
    if not hasattr(os, "sched_getaffinity"):
        return tuple(range(os.cpu_count() or 1))
    last_turn: dict[str, int] = {}
    turns = {}
    for core in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") as file:
                physical = file.read().strip()
        except OSError:
            physical = str(core)
        last_turn[physical] = turns[core] = last_turn.get(physical, -1) + 1
    return tuple(sorted(turns, key=lambda core: (turns[core], core)))
