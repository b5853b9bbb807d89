"""Text files in which the kernel tells its counters, under /proc, and the units that it counts in."""

from __future__ import annotations

import os

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
"""The unit in which the kernel tells CPU time."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
"""The unit in which the kernel tells memory."""


def words(path: str) -> list[str]:
    """The words of a file; none where it cannot be read."""
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def value_in(path: str, start: str, separator: str = ":") -> str | None:
    """What stands after the last separator in the first line that starts so; None where there is no such line."""
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(start):
                    return line.rpartition(separator)[2].strip()
    except OSError:
        pass
    return None
