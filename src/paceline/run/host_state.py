"""Facts of the machine: what it is, and how busy it was before, during and after a run. Reads /proc of Linux.

What a system does not tell is None, and never guessed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import psutil

from paceline.record.machines import MachineFacts
from paceline.sites import BusyCounter


class MachineMoment(TypedDict):
    """How busy a machine is at one moment, as it is stored."""

    time: float
    """Unix time."""
    load1: float
    cpu_pressure_some_avg10: float | None
    memory_pressure_some_avg10: float | None
    io_pressure_some_avg10: float | None
    cpu_freq_mhz: list[float] | None
    memory_available_bytes: int


class MachineLoad(TypedDict):
    """How busy a machine was during a run, as it is stored."""

    wall_s: float
    busy_other_fraction: float
    """Part of the CPU time of all cores that neither the workers nor we used."""
    steal_fraction: float
    host_cpu_s: float
    """CPU seconds of our own process there."""
    host_cpu_fraction: float
    workers_cpu_s: float
    cpu_pressure_some: float | None
    """Part of the run in which some task that could run had no core."""
    load1: float
    cpu_freq_mhz: list[float] | None
    oom_kills: int


class RunState(TypedDict, total=False):
    """How busy the machines of a run were, as it is stored."""

    before: MachineMoment
    during: MachineLoad
    hosts: list[MachineLoad]
    """The load of each host, where the hosts are several machines."""
    site: Mapping[str, object]
    """What the site tells of itself."""
    after: MachineMoment


def machine() -> MachineFacts:
    """What this machine is. `id` tells machines apart; it is a hash, so that the record does not hold a host name."""
    cpu_model, threads = _cpu_model(), psutil.cpu_count()
    identity = [socket.gethostname(), _read("/etc/machine-id"), cpu_model, threads]
    return {
        "cpu_model": cpu_model,
        "cores": psutil.cpu_count(logical=False),
        "threads": threads,
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "virtual": _is_virtual(),
        "accelerator": _accelerators(),
        "id": hashlib.sha256(repr(identity).encode()).hexdigest()[:12],
    }


def moment() -> MachineMoment:
    """How busy the machine is right now."""
    memory = psutil.virtual_memory()
    return {
        "time": time.time(),
        "load1": os.getloadavg()[0],
        "cpu_pressure_some_avg10": _pressure("cpu"),
        "memory_pressure_some_avg10": _pressure("memory"),
        "io_pressure_some_avg10": _pressure("io"),
        "cpu_freq_mhz": _frequencies(),
        "memory_available_bytes": memory.available,
    }


def busy_now(own_s: float = 0.0) -> BusyCounter:
    """The counter of this machine, without `own_s`: CPU seconds of what belongs to the run but is no worker."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    # Guest time is contained in user time on Linux; counting it again would invent work.
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    own = os.times()
    return BusyCounter(
        wall_s=time.monotonic(),
        busy_s=sum(times) - idle - guests - getattr(times, "steal", 0.0) - own_s,
        steal_s=getattr(times, "steal", 0.0),
        host_s=own.user + own.system,
        cores=psutil.cpu_count() or 1,
        pressure_s=_number_in("/proc/pressure/cpu", r"some .*total=(\d+)", 1e-6),
        oom_kills=int(_number_in("/proc/vmstat", r"^oom_kill (\d+)", 1) or 0),
        load1=os.getloadavg()[0],
        cpu_freq_mhz=_frequencies(),
    )


def counted(elsewhere: Sequence[BusyCounter | None], own_s: float) -> list[BusyCounter | None]:
    """Counters of the machines of a run: of hosts that are other machines (None: gone meanwhile), else of this one."""
    return [*elsewhere] or [busy_now(own_s)]


def during(before: BusyCounter, after: BusyCounter, workers_cpu_s: float) -> MachineLoad:
    """What happened on a machine between two counters, and how much of it was not ours."""
    wall = max(after.wall_s - before.wall_s, 1e-9)
    host = after.host_s - before.host_s
    others = max(0.0, after.busy_s - before.busy_s - workers_cpu_s - host)
    return {
        "wall_s": wall,
        "busy_other_fraction": others / (wall * after.cores),
        "steal_fraction": (after.steal_s - before.steal_s) / (wall * after.cores),
        "host_cpu_s": host,
        "host_cpu_fraction": host / wall,
        "workers_cpu_s": workers_cpu_s,
        "cpu_pressure_some": (
            None
            if before.pressure_s is None or after.pressure_s is None
            else (after.pressure_s - before.pressure_s) / wall
        ),
        "load1": after.load1,
        "cpu_freq_mhz": after.cpu_freq_mhz,
        "oom_kills": after.oom_kills - before.oom_kills,
    }


def during_all(
    before: Sequence[BusyCounter | None], after: Sequence[BusyCounter | None], workers_cpu_s: Sequence[float]
) -> RunState:
    """The worst of all machines of a run as "during", and where they are several, each of them as "hosts".

    Args:
        before: counters of the machines at the start of the run.
        after: the same at its end.
        workers_cpu_s: CPU seconds of the workers of each host; hosts that share one machine are summed up.
    """
    if len(before) == 1 and before[0] and after[0]:
        return {"during": during(before[0], after[0], sum(workers_cpu_s))}
    loads = [during(b, a, cpu_s) for b, a, cpu_s in zip(before, after, workers_cpu_s, strict=True) if b and a]
    if not loads:
        return {"during": during(busy_now(), busy_now(), sum(workers_cpu_s))}
    pressures = [load["cpu_pressure_some"] for load in loads if load["cpu_pressure_some"] is not None]
    worst: MachineLoad = {
        "wall_s": max(load["wall_s"] for load in loads),
        "busy_other_fraction": max(load["busy_other_fraction"] for load in loads),
        "steal_fraction": max(load["steal_fraction"] for load in loads),
        "host_cpu_s": max(load["host_cpu_s"] for load in loads),
        "host_cpu_fraction": max(load["host_cpu_fraction"] for load in loads),
        "cpu_pressure_some": max(pressures, default=None),
        "load1": max(load["load1"] for load in loads),
        "oom_kills": max(load["oom_kills"] for load in loads),
        "cpu_freq_mhz": None,
        "workers_cpu_s": sum(workers_cpu_s),
    }
    return {"during": worst, "hosts": loads}


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _cpu_model() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo") or "", re.MULTILINE)
    return match[1] if match else platform.processor() or platform.machine()


def _is_virtual() -> bool:
    return " hypervisor" in (_read("/proc/cpuinfo") or "")


def _accelerators() -> str:
    """Names and number of the devices that a driver shows, "none", or "unknown" if there are some without names."""
    texts = [_read(str(path)) or "" for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))]
    names = Counter(match[1] if (match := re.search(r"^Model:\s*(.+)$", text, re.MULTILINE)) else "" for text in texts)
    if names and "" not in names:
        return ", ".join(f"{count} x {name}" for name, count in names.items())
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("accel*"), *Path("/dev").glob("kfd")]
    return "unknown" if names or devices else "none"


def _pressure(resource: str) -> float | None:
    return _number_in(f"/proc/pressure/{resource}", r"some avg10=([\d.]+)", 0.01)


def _number_in(path: str, pattern: str, unit: float) -> float | None:
    """The number that a pattern finds in a file, times a unit; None where there is none."""
    match = re.search(pattern, _read(path) or "", re.MULTILINE)
    return float(match[1]) * unit if match else None


def _frequencies() -> list[float] | None:
    try:
        return [round(core.current, 1) for core in psutil.cpu_freq(percpu=True)] or None
    except (NotImplementedError, OSError, AttributeError):
        return None
