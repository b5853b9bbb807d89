"""What the processes of a run use: CPU, memory, I/O and network, sampled at no more than 2 Hz.

Samples known processes only: a scan of the whole process table costs more than the work it would find. Children
(loader workers) are looked for on every tenth sample, from the kernel's own list of a process's children.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import psutil

from paceline.sites import Running

PERIOD_S = 0.5
CHILDREN_EVERY = 10
"""Samples between two looks for new children: loader workers start once and stay."""


class Meter:
    """Resource samples of the ranks of one run."""

    def __init__(self, ranks: Sequence[Running]) -> None:
        self._started = time.monotonic()
        self._trees = {
            running.process.rank: [psutil.Process(running.pid)]
            for running in ranks
            if running.pid is not None and running.process.rank is not None and psutil.pid_exists(running.pid)
        }
        self._count = 0
        self._network_before = _network()
        self.samples: list[dict[str, Any]] = []
        self.cpu_s: dict[int, float] = {}
        """Rank → CPU seconds of its processes so far."""

    def sample(self) -> dict[int, float]:
        """Take one sample; rank → resident bytes, its children included."""
        if self._count % CHILDREN_EVERY == 1:
            self._find_children()
        self._count += 1
        ranks = {}
        for rank, processes in self._trees.items():
            usage = [u for process in processes if (u := _usage(process))]
            if usage:
                ranks[rank] = {key: sum(u[key] for u in usage) for key in usage[0]}
                self.cpu_s[rank] = ranks[rank]["cpu_s"]
        self.samples.append({"t_s": time.monotonic() - self._started, "ranks": ranks})
        return {rank: used["rss_bytes"] for rank, used in ranks.items()}

    def report(self) -> dict[str, Any]:
        """All samples as they are stored."""
        before, after = self._network_before, _network()
        return {
            "period_s": PERIOD_S,
            "samples": [
                {"t_s": s["t_s"], "ranks": {str(rank): used for rank, used in s["ranks"].items()}} for s in self.samples
            ],
            # Linux counts traffic by network namespace, not by process: on site local it is the whole machine's.
            "network": {"scope": "namespace", **{key: after[key] - before[key] for key in before}} if before else None,
        }

    def _find_children(self) -> None:
        for processes in self._trees.values():
            with contextlib.suppress(psutil.Error):
                processes[1:] = processes[0].children(recursive=True)


def _usage(process: psutil.Process) -> dict[str, float] | None:
    try:
        with process.oneshot():
            cpu = process.cpu_times()
            usage = {"rss_bytes": float(process.memory_info().rss), "cpu_s": cpu.user + cpu.system}
    except psutil.Error:
        return None
    try:
        counters = process.io_counters()
        usage |= {"read_bytes": float(counters.read_bytes), "written_bytes": float(counters.write_bytes)}
    except (psutil.Error, AttributeError, OSError):
        usage |= {"read_bytes": 0.0, "written_bytes": 0.0}
    return usage


def _network() -> dict[str, int]:
    counters = psutil.net_io_counters()
    return {"sent_bytes": counters.bytes_sent, "received_bytes": counters.bytes_recv} if counters else {}
