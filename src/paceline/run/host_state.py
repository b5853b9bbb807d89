"""The machine as facts: what it is, and how busy it was before, during and after a run. Reads /proc; Linux first.

Whatever a system does not tell is None, never guessed.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from paceline.record.machines import MachineFacts


def machine() -> MachineFacts:
    """Who this machine is. `id` tells machines apart; it is a hash, so no host name leaves the store with it."""
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


def moment() -> dict[str, Any]:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class BusyCounter:
    """CPU seconds of the whole machine and of this host process so far; two of them bracket a run."""

    wall_s: float
    busy_s: float
    """All cores, all processes, without idle, I/O wait and steal."""
    steal_s: float
    """Time that a hypervisor gave to others."""
    host_s: float
    """Our own process, threads included, children excluded."""
    cores: int
    pressure_s: float | None
    """Time in which some task that could run had no core, since boot."""
    oom_kills: int
    """Processes that the kernel killed because memory ran out, since boot."""
    load1: float
    cpu_freq_mhz: list[float] | None = None

    @classmethod
    def now(cls, own_s: float = 0.0) -> BusyCounter:
        """Args: own_s: CPU seconds of what belongs to the run without being a worker; they are not counted as busy."""
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # Guest time is contained in user time on Linux; counting it again would invent work.
        guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        own = os.times()
        return cls(
            wall_s=time.monotonic(),
            busy_s=sum(times) - idle - guests - getattr(times, "steal", 0.0) - own_s,
            steal_s=getattr(times, "steal", 0.0),
            host_s=own.user + own.system,
            cores=psutil.cpu_count() or 1,
            pressure_s=_found(r"some .*total=(\d+)", "/proc/pressure/cpu", 1e-6),
            oom_kills=int(_found(r"^oom_kill (\d+)", "/proc/vmstat", 1) or 0),
            load1=os.getloadavg()[0],
            cpu_freq_mhz=_frequencies(),
        )


def during(before: BusyCounter, after: BusyCounter, workers_cpu_s: float) -> dict[str, Any]:
    """What happened on the machine between two counters, and how much of it was not ours."""
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


def counted(elsewhere: Sequence[Mapping[str, Any] | None], own_s: float) -> list[BusyCounter | None]:
    """Counters of the machines of a run: those that told theirs (None: gone meanwhile), else this one."""
    return [BusyCounter(**counter) if counter else None for counter in elsewhere] or [BusyCounter.now(own_s)]


def during_all(
    before: Sequence[BusyCounter | None], after: Sequence[BusyCounter | None], workers_cpu_s: Sequence[float]
) -> dict[str, Any]:
    """The worst of all machines of a run as "during", and where they are several, each of them as "hosts".

    Args:
        workers_cpu_s: by host; hosts that share one machine are summed up.
    """
    if len(before) == 1 and before[0] and after[0]:
        return {"during": during(before[0], after[0], sum(workers_cpu_s))}
    each = [during(b, a, cpu_s) for b, a, cpu_s in zip(before, after, workers_cpu_s, strict=True) if b and a]
    if not each:
        return {"during": during(BusyCounter.now(), BusyCounter.now(), sum(workers_cpu_s))}
    worst = {
        name: max((one[name] for one in each if one[name] is not None), default=None)
        for name in each[0]
        if name not in {"cpu_freq_mhz", "workers_cpu_s"}
    }
    return {"during": {**worst, "cpu_freq_mhz": None, "workers_cpu_s": sum(workers_cpu_s)}, "hosts": each}


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
    """Names and number of the devices that a driver shows, "none", or "unknown": there are some, and nobody tells."""
    told = [_read(str(path)) or "" for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))]
    names = Counter(match[1] if (match := re.search(r"^Model:\s*(.+)$", text, re.MULTILINE)) else "" for text in told)
    if names and "" not in names:
        return ", ".join(f"{count} x {name}" for name, count in names.items())
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("accel*"), *Path("/dev").glob("kfd")]
    return "unknown" if names or devices else "none"


def _pressure(resource: str) -> float | None:
    return _found(r"some avg10=([\d.]+)", f"/proc/pressure/{resource}", 0.01)


def _found(pattern: str, path: str, unit: float) -> float | None:
    match = re.search(pattern, _read(path) or "", re.MULTILINE)
    return float(match[1]) * unit if match else None


def _frequencies() -> list[float] | None:
    try:
        return [round(f.current, 1) for f in psutil.cpu_freq(percpu=True)] or None
    except (NotImplementedError, OSError, AttributeError):
        return None
