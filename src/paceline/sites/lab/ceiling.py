"""The fastest link that this machine can emulate, measured once per boot and kept in the cache.

A link that is asked to be faster than that would in truth be slower than what the study says.
"""

from __future__ import annotations

import json
from pathlib import Path

from paceline.folders import cache_root
from paceline.sites.lab.cluster import Cluster
from paceline.sites.lab.layout import LabHost, LabLink, Layout

SHARE = 0.25
"""The part of the unshaped rate up to which shaped links are true. The token bucket needs CPU time too, and so do the
ranks: on two busy cores, where 19 to 37 Gbit/s passed unshaped, links of 10 Gbit/s achieved 0.29 to 0.98 of what they
were asked, and links of 2.5 Gbit/s 0.95 to 0.97."""
TRIES = 3
"""Measurements, of which the best counts: a busy machine can only make the result lower."""


def known_ceiling(delay_by: str) -> float | None:
    """Bytes per second with this means of delay; None if that was not measured since the machine started."""
    unshaped = _read().get(delay_by)
    return None if unshaped is None else SHARE * unshaped


def measured_ceiling(delay_by: str, link: LabLink, *, privilege: str) -> float:
    """The same, measured now with links that have no rate if it is not known."""
    if (ceiling := known_ceiling(delay_by)) is not None:
        return ceiling
    hosts = tuple(LabHost(name=f"lab{n}", address=f"10.77.0.{n}", cores=(), quota=None, rack=0) for n in (1, 2))
    free = LabLink(delay_s=min(link.delay_s, 1e-3))
    layout = Layout(hosts=hosts, link=free, spine=None, dilation=1.0, core_share=1.0, awake=(), fault=None)
    cluster = Cluster(layout, privilege=privilege, delay_by=delay_by, groups=None)
    cluster.make()
    try:
        unshaped = max(link.sent_bytes_per_s for _ in range(TRIES) for link in cluster.measure())
    finally:
        cluster.close()
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"boot": _boot(), "bytes_per_s": {**_read(), delay_by: unshaped}}), encoding="utf-8")
    return SHARE * unshaped


def _path() -> Path:
    return cache_root() / "lab" / "ceiling.json"


def _boot() -> str:
    """The kernel's name for the current boot of this machine; empty where it does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _read() -> dict[str, float]:
    """Means of delay → unshaped bytes per second, as measured since the machine started."""
    try:
        kept = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if kept.get("boot") != _boot():
        return {}
    return {delay_by: float(rate) for delay_by, rate in kept["bytes_per_s"].items()}
