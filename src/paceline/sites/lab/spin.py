"""A program that keeps the core on which it runs from sleeping: it does nothing, for ever, at the lowest priority.

It has to be the leader of its session.
"""

from __future__ import annotations

import contextlib
import os


def main() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # This counts where there is no idle control group: then the kernel gives a session its share as a whole.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("19")
    while True:
        pass


if __name__ == "__main__":
    main()
