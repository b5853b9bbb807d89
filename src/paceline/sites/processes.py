"""Processes on this machine and how they are all ended: what the local site and the lab have in common.

A process is ended in three ways: with its process group; by the kernel's parent-death signal, when its supervisor was
killed; and by a sweep for PACELINE_JOB in the environment of what is left, when something left its group. Each process
inherits that variable from the rank that started it, so nothing of a run can hide from the sweep.
"""

from __future__ import annotations

import contextlib
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
from paceline.sites.remote.agent.processes import GRACE_S, REAP_S
from paceline.sites.remote.agent.usage import CHILDREN_EVERY_S, descendants

LOOK_AGAIN_S = 0.01


def tethered(argv: Sequence[str], *, cores: Sequence[int] = (), groups: Sequence[Path] = ()) -> list[str]:
    """The command line that starts a program tied to us, pinned to cores, in these control groups."""
    joins = [argument for group in groups for argument in ("--group", str(group))]
    pinned = ",".join(map(str, cores))
    return [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), pinned, *joins, "--", *argv]


class LocalProcess(Running):
    """A process on this machine, leader of its own group."""

    def __init__(self, process: Process, popen: subprocess.Popen[bytes], *, leader_waits: bool = False) -> None:
        """Args: leader_waits: whether the leader only waits for the program, and may end before it does."""
        self.process = process
        self.pid: int = popen.pid
        self._popen = popen
        self._leader_waits = leader_waits
        self._family: dict[int, psutil.Process | None] = {}
        self._started = self._next_look = time.monotonic()

    def wait(self) -> int:
        return self._popen.wait()

    def usage(self) -> ProcessUsage | None:
        """Asks the process and its children only: a scan of the whole process table would cost more than it tells."""
        now = time.monotonic()
        if now >= self._next_look:
            self._family = {pid: self._family.get(pid) or _process(pid) for pid in (self.pid, *descendants(self.pid))}
            # Loaders and servers start early: a young process is asked often, an old one seldom.
            self._next_look = now + min(CHILDREN_EVERY_S, (now - self._started) / 4)
        used = [usage for process in self._family.values() if process and (usage := _usage(process))]
        if not used:
            return None
        return ProcessUsage(**{name: sum(getattr(u, name) for u in used) for name in ProcessUsage.__dataclass_fields__})

    def gone(self, within_s: float) -> bool:
        """Whether it has ended; waits for that so long."""
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
        """Send a signal to all processes of its group; whether there are any."""
        try:
            os.killpg(self.pid, signum)
        except (ProcessLookupError, PermissionError):
            return False
        return True


class Processes:
    """The processes of one run on this machine."""

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
        """End all of them; the names of those that even SIGKILL did not end."""
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


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used so far; 0 for one that is gone."""
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
    """Kill every process that was started for this job file, whatever group it is in; the ids of those killed."""
    left = [process for process in psutil.process_iter() if _job_of(process) == job]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=REAP_S)
    return [process.pid for process in left]


def sweep_folder(folder: Path) -> list[int]:
    """Kill what supervisors that were killed left running for job files under this folder; the ids of those killed."""
    jobs = {job for process in psutil.process_iter() if (job := _job_of(process)) and Path(job).is_relative_to(folder)}
    return [pid for job in jobs for pid in sweep(job)]


def _job_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("PACELINE_JOB")
    except (psutil.Error, OSError):
        return None
