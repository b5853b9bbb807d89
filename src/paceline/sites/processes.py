"""Processes on this machine, ended for sure: what the local site and the lab have in common.

Three nets catch a process: its own process group, the kernel's parent-death signal (the host was killed), and a
sweep for PACELINE_JOB in the environment of what is left (something left its group). Each process inherits that
variable from the rank that started it, so nothing of a run can hide from the sweep.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from paceline.plan.process import Process
from paceline.sites import tether
from paceline.sites.base import ProcessUsage, Running

GRACE_S = 2.0
"""Time for a process to have its last word between SIGTERM and SIGKILL."""
REAP_S = 10.0
"""A killed process that is not gone after this is stuck in the kernel; say so rather than wait for ever."""
LOOK_AGAIN_S = 0.01
CHILDREN_EVERY_S = 5.0
"""How often at most a process that has run for long is asked for new children: the question costs a read a thread, and
a framework with a hundred threads on two cores would feel it."""


def tethered(argv: Sequence[str], *, cores: Sequence[int] = (), groups: Sequence[Path] = ()) -> list[str]:
    """The command line that starts a program tied to us, pinned to cores, in these control groups."""
    joined = [argument for group in groups for argument in ("--group", str(group))]
    mine = [str(os.getpid()), ",".join(map(str, cores))]
    return [sys.executable, "-I", "-S", tether.__file__, *mine, *joined, "--", *argv]


class LocalProcess(Running):
    """A process on this machine, leader of its own group."""

    def __init__(self, process: Process, popen: subprocess.Popen[bytes], *, leader_waits: bool = False) -> None:
        """Args: leader_waits: the leader only waits for the program, and may be gone before it."""
        self.process = process
        self.pid: int = popen.pid
        self._popen = popen
        self._leader_waits = leader_waits
        self._known: dict[int, psutil.Process | None] = {}
        self._started = self._next_look = time.monotonic()

    def wait(self) -> int:
        return self._popen.wait()

    def usage(self) -> ProcessUsage | None:
        """Asks known processes only: a scan of the whole process table costs more than the work it would find."""
        now = time.monotonic()
        if now >= self._next_look:
            self._known = {pid: self._known.get(pid) or _process(pid) for pid in (self.pid, *descendants(self.pid))}
            # Loaders and servers start early: a young process is asked often, an old one seldom.
            self._next_look = now + min(CHILDREN_EVERY_S, (now - self._started) / 4)
        used = [usage for process in self._known.values() if process and (usage := _usage(process))]
        if not used:
            return None
        return ProcessUsage(**{name: sum(getattr(u, name) for u in used) for name in ProcessUsage.__dataclass_fields__})

    def gone(self, within_s: float) -> bool:
        """Whether it has ended, waiting for it so long."""
        deadline = time.monotonic() + within_s
        try:
            self._popen.wait(max(0.0, within_s))
        except subprocess.TimeoutExpired:
            return False
        while self._leader_waits and self.signal_group(0):
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_AGAIN_S)
        return True

    def signal_group(self, signum: int) -> bool:
        """Send a signal to all of the group; whether there was anybody."""
        try:
            os.killpg(self.pid, signum)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class Processes:
    """What was started for one run, and how it is all ended."""

    def __init__(self) -> None:
        self.started: list[LocalProcess] = []
        self._jobs: set[str] = set()

    def start(
        self,
        process: Process,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        folder: Path,
        leader_waits: bool = False,
    ) -> LocalProcess:
        with (folder / f"{process.name}.log").open("wb") as log:
            popen = subprocess.Popen(
                command,
                env=dict(env),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = LocalProcess(process, popen, leader_waits=leader_waits)
        self.started.append(running)
        self._jobs.add(env.get("PACELINE_JOB", ""))
        return running

    def stop(self) -> list[str]:
        """End everything, for sure; the names of what the kernel would not let go."""
        started, self.started = self.started, []
        for running in started:
            running.signal_group(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for running in started:
            running.gone(deadline - time.monotonic())
        for running in started:
            running.signal_group(signal.SIGKILL)
        jobs, self._jobs = self._jobs - {""}, set()
        for job in jobs:
            sweep(job)
        return [f"{r.process.name} (process {r.pid})" for r in started if not r.gone(REAP_S)]


def descendants(pid: int) -> list[int]:
    """Children of a process and their children, from the kernel's own lists; none where it keeps no such lists."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):  # noqa: PTH207  ten times faster than Path.glob
        with contextlib.suppress(OSError, ValueError):
            found += [int(child) for child in Path(path).read_text(encoding="ascii").split()]
    return found + [deeper for child in found for deeper in descendants(child)]


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def cpu_seconds(pid: int) -> float:
    """CPU time that a process used so far; none of one that is gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _usage(process: psutil.Process) -> ProcessUsage | None:
    try:
        with process.oneshot():
            cpu, rss = process.cpu_times(), process.memory_info().rss
    except psutil.Error:
        return None
    read = written = 0.0
    with contextlib.suppress(psutil.Error, AttributeError, OSError):
        counters = process.io_counters()
        read, written = float(counters.read_bytes), float(counters.write_bytes)
    return ProcessUsage(rss_bytes=float(rss), cpu_s=cpu.user + cpu.system, read_bytes=read, written_bytes=written)


def sweep(job: str) -> list[int]:
    """Kill every process of ours that was started for this job file, wherever it went; the ids of those found."""
    found = [process for process in psutil.process_iter() if _job_of(process) == job]
    for process in found:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(found, timeout=REAP_S)
    return [process.pid for process in found]


def sweep_folder(folder: Path) -> list[int]:
    """Kill what earlier hosts, killed themselves, left running for job files under this folder."""
    jobs = {job for process in psutil.process_iter() if (job := _job_of(process)) and Path(job).is_relative_to(folder)}
    return [pid for job in jobs for pid in sweep(job)]


def _job_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("PACELINE_JOB")
    except (psutil.Error, OSError):
        return None
