"""What the processes of a run use: CPU, memory, I/O and network, sampled at no more than 2 Hz through the site."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from paceline.record.meter import Look, meter_table
from paceline.sites import Running, Site

PERIOD_S = 0.5


class Meter:
    """Resource samples of all processes of one run, servers and schedulers included."""

    def __init__(self, running: Sequence[Running], site: Site) -> None:
        self._running = running
        self._site = site
        self._started = time.monotonic()
        self._network_before = site.traffic()
        self._network_after = self._network_before
        self._samples: list[Look] = []
        self._cpu_s: dict[str, float] = {}

    def sample(self) -> dict[str, float]:
        """Take one sample; name of the process → resident bytes, children included."""
        used = {one.process.name: usage for one in self._running if (usage := one.usage())}
        for name, usage in used.items():
            # A child that ended takes its count with it.
            self._cpu_s[name] = max(self._cpu_s.get(name, 0.0), usage.cpu_s)
        self._network_after = self._site.traffic()
        now = time.monotonic() - self._started
        self._samples.append({"t_s": now, "processes": {name: asdict(usage) for name, usage in used.items()}})
        return {name: usage.rss_bytes for name, usage in used.items()}

    def cpu_s(self, name: str) -> float:
        """CPU seconds of a process and its children, as far as they were seen."""
        return self._cpu_s.get(name, 0.0)

    def table(self) -> pa.Table | None:
        """All samples as they are stored; None where none was taken."""
        return meter_table(self._samples)

    def report(self) -> dict[str, Any]:
        """What else is stored of the meter."""
        before, after = self._network_before, self._network_after
        return {
            "period_s": PERIOD_S,
            "network": {"scope": self._site.traffic_scope, **{key: after[key] - before[key] for key in before}}
            if before
            else None,
        }
