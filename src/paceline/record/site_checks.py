"""Did the site give what was asked of it: doubts about emulated links and the emulation's own cost.

Reads `record.state["site"]`, which a site that emulates nothing leaves empty. Part of `checks`.
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.record.record import Doubt, Record

LINK_LIMIT = 0.10
"""Achieved against asked. TCP and Ethernet headers alone take 4 to 5 %, as on a real link."""

OWN_CPU_LIMIT = 0.05
"""Of a core: as much as others may use of the machine before it is a doubt."""


def site_doubts(record: Record) -> Iterator[Doubt]:
    """Doubts about what the site emulated during this run."""
    site = record.state.get("site") or {}
    off = []
    for link in site.get("links", ()):
        for what, asked, got, unit, scale in (
            ("sends", link["asked_bytes_per_s"], link["sent_bytes_per_s"], "Mbit/s", 8e-6),
            ("receives", link["asked_bytes_per_s"], link["received_bytes_per_s"], "Mbit/s", 8e-6),
            ("has a round trip of", link["asked_round_trip_s"], link["round_trip_s"], "ms", 1e3),
        ):
            if asked and abs(got / asked - 1) > LINK_LIMIT:
                off.append(f"{link['host']} {what} {got * scale:.3g} {unit} instead of {asked * scale:.3g}")
    if off:
        more = f" and {len(off) - 2} more" if len(off) > 2 else ""
        yield Doubt(
            code="lab-links",
            message="; ".join(off[:2]) + more,
            hint="measure when the machine is quiet, or ask for a slower link: cluster.network",
        )
    own = (site.get("own_cpu") or {}).get("fraction")
    if own is not None and own > OWN_CPU_LIMIT:
        yield Doubt(
            code="lab-busy",
            message=f"emulating the network took {own:.0%} of a core, which the ranks could not use",
            hint="ask for a slower link or less traffic, or more dilation: [cluster.lab] dilation",
        )
