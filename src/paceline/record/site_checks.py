"""Checks whether the site provided what was asked of it: the emulated links, and the CPU time of the emulation.

Reads `record.state["site"]`, which is empty if the site emulates nothing. Part of `checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paceline.record.fact import mapping, number, section
from paceline.record.record import Doubt, Record

LINK_LIMIT = 0.10
"""The relative difference between the achieved and the requested link. As on a real link, TCP and Ethernet headers
alone take 4 to 5 %."""

OWN_CPU_LIMIT = 0.05
"""The share of a core; the same limit as for the CPU use of other programs."""


def links_of(record: Record) -> list[Mapping[str, object]]:
    """Returns what the site measured of each link that it emulates; [] if it emulates none."""
    links = section(record.state, "site").get("links")
    facts = [mapping(link) for link in links] if isinstance(links, (list, tuple)) else []
    return [link for link in facts if link is not None]


def site_doubts(record: Record) -> Iterator[Doubt]:
    """Yields the doubts about what the site emulated during a run."""
    off = []
    for link in links_of(record):
        for what, asked_key, achieved_key, unit, scale in (
            ("sends", "asked_bytes_per_s", "sent_bytes_per_s", "Mbit/s", 8e-6),
            ("receives", "asked_bytes_per_s", "received_bytes_per_s", "Mbit/s", 8e-6),
            ("has a round trip of", "asked_round_trip_s", "round_trip_s", "ms", 1e3),
        ):
            asked, achieved = number(link.get(asked_key)), number(link.get(achieved_key))
            if asked and achieved is not None and abs(achieved / asked - 1) > LINK_LIMIT:
                off.append(f"{link.get('host')} {what} {achieved * scale:.3g} {unit} instead of {asked * scale:.3g}")
    if off:
        more = f" and {len(off) - 2} more" if len(off) > 2 else ""
        yield Doubt(
            code="lab-links",
            message="; ".join(off[:2]) + more,
            hint="measure when the machine is quiet, or ask for a slower link: cluster.network",
        )
    own = number(section(section(record.state, "site"), "own_cpu").get("fraction"))
    if own is not None and own > OWN_CPU_LIMIT:
        yield Doubt(
            code="lab-busy",
            message=f"emulating the network took {own:.0%} of a core, which the ranks could not use",
            hint="ask for a slower link or less traffic, or more dilation: [cluster.lab] dilation",
        )
