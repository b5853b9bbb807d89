"""Keep the cores that we may use from falling asleep: a thread of the lowest priority that does nothing, for ever.

Runs as a script of its own, leader of its session.
"""

from __future__ import annotations

import contextlib
import os


def main() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Counts where it is in no control group of its own: then a session is shared with as a whole.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("19")
    while True:
        pass


if __name__ == "__main__":
    main()
