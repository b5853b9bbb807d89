"""Cores stay awake while a run of the lab goes on: a host is as fast beside sleeping neighbours as beside busy ones.

A host held to a share of a core sleeps every few milliseconds. On a virtual machine the hypervisor then gives the core
to somebody else, caches and clock rate with it, and the host needs the more CPU time for the same work the more it
sleeps: a step of ResNet-44 took 1.65 times the CPU time at a quarter of a core. A host alone on the machine has a
neighbour that sleeps, two hosts have not. Real hosts know nothing of all that, so the cores are never left to sleep.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from paceline.sites.lab import spin
from paceline.sites.processes import cpu_seconds, tethered


class Awake:
    """One spinning process per core, tied to us like everything else.

    The lowest priority is not enough: Linux shares a core between sessions first, and only then between the processes
    of one by their priorities. So they are in a control group that is idle as a whole, or else in a session that is.
    """

    def __init__(self, cores: Sequence[int], group: Path | None) -> None:
        """Args: group: of `Groups.make_idle`."""
        self._spinning = [
            subprocess.Popen(
                tethered([sys.executable, "-I", "-S", spin.__file__], cores=[core], groups=[group] if group else []),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            for core in cores
        ]

    def cpu_s(self) -> float:
        """CPU seconds so far, which nobody else wanted."""
        return sum(cpu_seconds(one.pid) for one in self._spinning)

    def end(self) -> None:
        for one in self._spinning:
            one.kill()
        for one in self._spinning:
            one.wait()
