"""Keeps the cores awake during a run of the lab, so that a host is as fast beside idle hosts as beside busy ones.

A host that is held to a share of a core sleeps every few milliseconds. On a virtual machine the hypervisor then gives
the core to somebody else, with its caches and its clock rate, so the same work needs more CPU time the more the host
sleeps: a step of ResNet-44 took 1.65 times the CPU time at a quarter of a core. A single host leaves the other cores
asleep, and two hosts do not. On real hosts there is no such effect, so the lab never lets its cores sleep.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from paceline.sites.lab import spin
from paceline.sites.processes import cpu_seconds, tethered


class Awake:
    """One spinning process per core, which ends when we do.

    The lowest priority is not enough: Linux shares a core between sessions first, and only then by priority between the
    processes of a session. So they are in a control group that is idle as a whole, or else in a session that is.
    """

    def __init__(self, cores: Sequence[int], group: Path | None) -> None:
        """Args: group: the idle control group, of `Groups.make_idle`; None: there is none."""
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
        """CPU seconds that they have used so far, which nobody else wanted."""
        return sum(cpu_seconds(process.pid) for process in self._spinning)

    def end(self) -> None:
        for process in self._spinning:
            process.kill()
        for process in self._spinning:
            process.wait()
