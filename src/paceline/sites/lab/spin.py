"""Keep the cores that we may use from falling asleep: a thread of the lowest priority that does nothing, for ever.

Runs as a script of its own. The kernel lets it run only where nobody else wants to (SCHED_IDLE).
"""

from __future__ import annotations

import os


def main() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


if __name__ == "__main__":
    main()
