"""What processes and their children have used so far."""

from __future__ import annotations

import contextlib
import glob
import time
from collections.abc import Mapping, Sequence

from paceline.sites.remote.agent.kernel_files import CLOCK_TICKS_PER_S, PAGE_BYTES, value_in, words

CHILDREN_EVERY_S = 5.0
"""How often at most a process that has run for long is asked for new children: the question costs a read per thread,
and a framework with a hundred threads on two cores would feel it."""


class UsageReader:
    """Reads the usage of processes, and remembers their children."""

    def __init__(self) -> None:
        self._families: dict[int, _Family] = {}

    def usage(self, processes: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """Name → what it and its children have used, from name → process id."""
        return {name: _usage(self._family(pid)) for name, pid in processes.items()}

    def _family(self, pid: int) -> list[int]:
        if pid not in self._families:
            self._families[pid] = _Family(pid)
        return self._families[pid].members()


class _Family:
    """A process and its children."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._children: list[int] = []
        self._since = self._next_look = time.monotonic()

    def members(self) -> list[int]:
        """Loaders and servers start early: a young process is asked often for new children, an old one seldom."""
        now = time.monotonic()
        if now >= self._next_look:
            self._children = descendants(self._pid)
            self._next_look = now + min(CHILDREN_EVERY_S, (now - self._since) / 4)
        return [self._pid, *self._children]


def descendants(pid: int) -> list[int]:
    """Children of a process and their children, from the kernel's own lists; none where it keeps no such lists."""
    children = [int(child) for path in glob.glob(f"/proc/{pid}/task/*/children") for child in words(path)]
    return children + [deeper for child in children for deeper in descendants(child)]


def _usage(pids: Sequence[int]) -> dict[str, float]:
    total = {"rss_bytes": 0.0, "cpu_s": 0.0, "read_bytes": 0.0, "written_bytes": 0.0}
    for pid in pids:
        # A process that ended meanwhile, or is not ours to ask, adds what could be read of it.
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat") as file:
                # The second field is a name in brackets that may hold anything.
                fields = file.read().rpartition(")")[2].split()
            total["cpu_s"] += (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S
            total["rss_bytes"] += int(fields[21]) * PAGE_BYTES
            total["read_bytes"] += float(value_in(f"/proc/{pid}/io", "read_bytes") or 0)
            total["written_bytes"] += float(value_in(f"/proc/{pid}/io", "write_bytes") or 0)
    return total
