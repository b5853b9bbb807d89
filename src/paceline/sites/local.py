"""This machine: one host, ranks pinned to its cores, everything ended for sure.

Three nets catch a process: its own process group, the kernel's parent-death signal (the host was killed), and a
sweep for PACELINE_JOB in the environment of what is left (something left its group). Each process inherits that
variable from the rank that started it, so nothing of a run can hide from the sweep.
"""

from __future__ import annotations

import contextlib
import glob
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
from paceline.sites.base import Running, Site, SiteState, Usage

LOOPBACK = "127.0.0.1"
GRACE_S = 2.0
"""Time for a process to have its last word between SIGTERM and SIGKILL."""
CHILDREN_EVERY_S = 5.0
"""How often at most a process that has run for long is asked for new children: the question costs a read a thread, and
a framework with a hundred threads on two cores would feel it."""
REAP_S = 10.0
"""A killed process that is not gone after this is stuck in the kernel; say so rather than wait for ever."""


class LocalProcess(Running):
    """A process on this machine, leader of its own group."""

    def __init__(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid: int = popen.pid
        self._popen = popen
        self._known: dict[int, psutil.Process | None] = {}
        self._started = self._next_look = time.monotonic()

    def wait(self) -> int:
        return self._popen.wait()

    def usage(self) -> Usage | None:
        """Asks known processes only: a scan of the whole process table costs more than the work it would find."""
        now = time.monotonic()
        if now >= self._next_look:
            self._known = {pid: self._known.get(pid) or _process(pid) for pid in (self.pid, *_descendants(self.pid))}
            # Loaders and servers start early: a young process is asked often, an old one seldom.
            self._next_look = now + min(CHILDREN_EVERY_S, (now - self._started) / 4)
        used = [usage for process in self._known.values() if process and (usage := _usage(process))]
        if not used:
            return None
        return Usage(**{name: sum(getattr(u, name) for u in used) for name in Usage.__dataclass_fields__})

    def gone(self, within_s: float) -> bool:
        """Whether it has ended, waiting for it so long."""
        try:
            self._popen.wait(max(0.0, within_s))
        except subprocess.TimeoutExpired:
            return False
        return True

    def signal_group(self, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signum)


class LocalSite(Site):
    """One host: this one."""

    name = "local"

    def __init__(self) -> None:
        self._started: list[LocalProcess] = []
        self._jobs: set[str] = set()

    def state(self) -> SiteState:
        return SiteState(state="ready")

    def limits(self) -> SiteLimits:
        return SiteLimits(hosts=1, cores_per_host=len(usable_cores()), devices={"cuda": cuda_devices()})

    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        if cluster.hosts != 1:
            raise SiteError("site local has one host", hint="set cluster.hosts = 1")
        cores, free = usable_cores(), free_ports(ports)
        return Topology(hosts=(Host(name="localhost", address=LOOPBACK, cores=cores, interface="lo", ports=free),))

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
        self._jobs.add(env.get("PACELINE_JOB", ""))
        return running

    def stop(self) -> list[str]:
        started, self._started = self._started, []
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

    def sweep(self, folder: Path) -> None:
        sweep_folder(folder)


def _descendants(pid: int) -> list[int]:
    """Children of a process and their children, from the kernel's own lists; none where it keeps no such lists."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):  # noqa: PTH207  ten times faster than Path.glob
        with contextlib.suppress(OSError, ValueError):
            found += [int(child) for child in Path(path).read_text(encoding="ascii").split()]
    return found + [deeper for child in found for deeper in _descendants(child)]


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _usage(process: psutil.Process) -> Usage | None:
    try:
        with process.oneshot():
            cpu, rss = process.cpu_times(), process.memory_info().rss
    except psutil.Error:
        return None
    read = written = 0.0
    with contextlib.suppress(psutil.Error, AttributeError, OSError):
        counters = process.io_counters()
        read, written = float(counters.read_bytes), float(counters.write_bytes)
    return Usage(rss_bytes=float(rss), cpu_s=cpu.user + cpu.system, read_bytes=read, written_bytes=written)


def usable_cores() -> tuple[int, ...]:
    """Logical cores this process may use (a container or a batch system may have cut them down), in an order in
    which every physical core is given out once before any gets a second rank: two ranks on the two threads of one
    core would take turns, and look like a framework that does not scale.
    """
    if not hasattr(os, "sched_getaffinity"):
        return tuple(range(os.cpu_count() or 1))
    seen: dict[str, int] = {}
    turns = {}
    for core in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        try:
            physical = siblings.read_text(encoding="ascii").strip()
        except OSError:
            physical = str(core)
        seen[physical] = turns[core] = seen.get(physical, -1) + 1
    return tuple(sorted(turns, key=lambda core: (turns[core], core)))


def cuda_devices() -> int:
    """CUDA devices that a process started here would see; the driver's list, cut by CUDA_VISIBLE_DEVICES."""
    folder = Path("/proc/driver/nvidia/gpus")
    installed = len(list(folder.iterdir())) if folder.is_dir() else 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return installed if visible is None else min(installed, len([one for one in visible.split(",") if one.strip()]))


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
