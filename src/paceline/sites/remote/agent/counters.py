"""Counters of a whole host: CPU seconds and network traffic since it was started."""

from __future__ import annotations

import contextlib
import os
import time

from paceline.sites.remote.agent.kernel_files import CLOCK_TICKS_PER_S, value_in, words


def cpu_counters() -> dict[str, float | None]:
    """The fields of `BusyCounter`; two of them bracket a run."""
    ticks = [int(count) for count in words("/proc/stat")[1:9]]
    user, nice, system, _, _, irq, softirq, steal = (count / CLOCK_TICKS_PER_S for count in ticks)
    pressure_us = value_in("/proc/pressure/cpu", "some", "total=")
    return {
        "wall_s": time.monotonic(),
        "busy_s": user + nice + system + irq + softirq,
        "steal_s": steal,
        "host_s": sum(os.times()[:2]),
        "cores": os.cpu_count() or 1,
        "pressure_s": float(pressure_us) * 1e-6 if pressure_us else None,
        "oom_kills": int(value_in("/proc/vmstat", "oom_kill ", " ") or 0),
        "load1": os.getloadavg()[0],
    }


def traffic() -> dict[str, int]:
    """Bytes that all network devices have sent and received."""
    sent = received = 0
    with contextlib.suppress(OSError), open("/proc/net/dev") as file:
        for line in file:
            _, colon, numbers = line.partition(":")
            if colon:
                fields = numbers.split()
                received, sent = received + int(fields[0]), sent + int(fields[8])
    return {"sent_bytes": sent, "received_bytes": received}
