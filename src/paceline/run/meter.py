"""What the processes of a run use: CPU, memory, I/O and network, sampled at no more than 2 Hz through the site."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import psutil

from paceline.sites import Running

PERIOD_S = 0.5


class Meter:
    """Resource samples of all processes of one run, servers and schedulers included."""

    def __init__(self, running: Sequence[Running]) -> None:
        self._running = running
        self._started = time.monotonic()
        self._network_before = _network()
        self._samples: list[dict[str, Any]] = []
        self._cpu_s: dict[str, float] = {}

    def sample(self) -> dict[str, float]:
        """Take one sample; name of the process → resident bytes, children included."""
        used = {one.process.name: usage for one in self._running if (usage := one.usage())}
        for name, usage in used.items():
            # A child that ended takes its count with it.
            self._cpu_s[name] = max(self._cpu_s.get(name, 0.0), usage.cpu_s)
        now = time.monotonic() - self._started
        self._samples.append({"t_s": now, "processes": {name: asdict(usage) for name, usage in used.items()}})
        return {name: usage.rss_bytes for name, usage in used.items()}

    def cpu_s(self, name: str) -> float:
        """CPU seconds of a process and its children, as far as they were seen."""
        return self._cpu_s.get(name, 0.0)

    def report(self) -> dict[str, Any]:
        """All samples as they are stored."""
        before, after = self._network_before, _network()
        return {
            "period_s": PERIOD_S,
            "samples": self._samples,
            # Linux counts traffic by network namespace, not by process: on site local it is the whole machine's.
            "network": {"scope": "namespace", **{key: after[key] - before[key] for key in before}} if before else None,
        }


def _network() -> dict[str, int]:
    counters = psutil.net_io_counters()
    return {"sent_bytes": counters.bytes_sent, "received_bytes": counters.bytes_recv} if counters else {}
