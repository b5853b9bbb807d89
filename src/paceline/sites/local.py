"""This machine: one host, ranks pinned to its cores, everything ended for sure.

Three nets catch a process: its own process group, the kernel's parent-death signal (the host was killed), and a
sweep for PACELINE_JOB in the environment of what is left (something left its group). Each process inherits that
variable from the rank that started it, so nothing of a run can hide from the sweep.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from paceline.errors import SiteError
from paceline.plan.capabilities import SiteLimits
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import ClusterChoice
from paceline.sites import tether
from paceline.sites.base import Running, Site, SiteState

LOOPBACK = "127.0.0.1"
GRACE_S = 2.0
"""Time for a process to have its last word between SIGTERM and SIGKILL."""
REAP_S = 10.0
"""A killed process that is not gone after this is stuck in the kernel; say so rather than wait for ever."""


class LocalProcess(Running):
    """A process on this machine, leader of its own group."""

    def __init__(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid: int = popen.pid
        self._popen = popen

    def wait(self) -> int:
        return self._popen.wait()

    def alive(self) -> bool:
        return self._popen.poll() is None

    def signal_group(self, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signum)


class LocalSite(Site):
    """One host: this one."""

    name = "local"

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []
        self._job: str | None = None

    def state(self) -> SiteState:
        return SiteState(state="ready")

    def limits(self) -> SiteLimits:
        return SiteLimits(hosts=1, cores_per_host=len(usable_cores()))

    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        if cluster.hosts != 1:
            raise SiteError("site local has one host", hint="set cluster.hosts = 1")
        host = Host(name="localhost", address=LOOPBACK, cores=usable_cores(), interface="lo")
        return Topology(hosts=(host,), ports=free_ports(ports))

    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> LocalProcess:
        cores = ",".join(map(str, process.cores))
        command = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), cores, "--", *argv]
        with (folder / f"{process.name}.log").open("wb") as log:
            popen = subprocess.Popen(
                command, env=dict(env), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        running = LocalProcess(process, popen)
        self._started.append(running)
        self._job = env.get("PACELINE_JOB", self._job)
        return running

    def fetch(self, folder: Path) -> None:
        """Nothing to do: the processes wrote into the folder itself."""

    def close(self) -> None:
        for running in self._started:
            running.signal_group(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for running in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running._popen.wait(max(0.0, deadline - time.monotonic()))  # noqa: SLF001
        for running in self._started:
            running.signal_group(signal.SIGKILL)
        if self._job is not None:
            sweep(self._job)
        for running in self._started:
            try:
                running._popen.wait(REAP_S)  # noqa: SLF001
            except subprocess.TimeoutExpired:
                raise SiteError(
                    f"process {running.pid} ({running.process.name}) does not die",
                    hint=f"it is stuck in the kernel: see /proc/{running.pid}/stack; a restart ends it",
                ) from None
        self._started, self._job = [], None


def usable_cores() -> tuple[int, ...]:
    """The cores this process may use, which a container or a batch system may have cut down."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def free_ports(count: int) -> tuple[int, ...]:
    """Ports that are free now; they are bound late, and a collision is retried by the runner."""
    sockets = []
    try:
        for _ in range(count):
            sock = socket.socket()
            sockets.append(sock)
            sock.bind((LOOPBACK, 0))
        return tuple(sock.getsockname()[1] for sock in sockets)
    finally:
        for sock in sockets:
            sock.close()


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
