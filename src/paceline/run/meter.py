"""Measures what the processes of a run use of CPU, memory, I/O and network; asks the site at most twice per second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

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
        """Take one sample; name of a process → resident bytes of it and its children."""
        used = {running.process.name: usage for running in self._running if (usage := running.usage())}
        for name, usage in used.items():
            # When a child ends, its CPU time is no longer counted: what was seen before still holds.
            self._cpu_s[name] = max(self._cpu_s.get(name, 0.0), usage.cpu_s)
        self._network_after = self._site.traffic()
        now = time.monotonic() - self._started
        self._samples.append({"t_s": now, "processes": {name: asdict(usage) for name, usage in used.items()}})
        return {name: usage.rss_bytes for name, usage in used.items()}

    def cpu_s(self, name: str) -> float:
        """CPU seconds of a process and its children, as of the last sample in which they were seen."""
        return self._cpu_s.get(name, 0.0)

    def table(self) -> pa.Table | None:
        """All samples as they are stored; None where there are none."""
        return meter_table(self._samples)

    def report(self) -> dict[str, object]:
        """What is stored of the meter beside its samples."""
        before, after = self._network_before, self._network_after
        return {
            "period_s": PERIOD_S,
            "network": {"scope": self._site.traffic_scope, **{key: after[key] - before[key] for key in before}}
            if before
            else None,
        }
