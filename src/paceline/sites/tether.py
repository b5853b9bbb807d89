"""Start a program tied to the process that asked for it.

    python -I -S tether.py PARENT CORES [--group FOLDER]… -- ARGV…

This is a program of its own, because what it does must happen between fork and exec, where a process that has threads
can do nothing safely. It sets the parent-death signal, which is kept across exec, joins control groups, pins itself to
cores, forbids core dumps, and becomes the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: str, cores: str, *rest: str) -> None:
    groups = []
    while rest[:1] == ("--group",):
        groups.append(rest[1])
        rest = rest[2:]
    separator, *argv = rest
    if separator != "--":
        sys.exit("usage: tether.py PARENT CORES [--group FOLDER]... -- ARGV...")
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for group in groups:
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write("0")  # the process that writes
        if cores:
            os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
        # Where memory runs out, the kernel should kill a rank, and not the supervisor or somebody's editor.
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")
    if os.getppid() != int(parent):
        sys.exit("the process that asked for this one is gone")
    # A crashing framework with gigabytes of weights must not fill the disk with a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execvpe(argv[0], argv, os.environ)  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
