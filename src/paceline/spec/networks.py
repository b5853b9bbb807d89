"""Networks by name. Rates are those of the wire; what a program gets is about 5 % less, as on real links."""

from __future__ import annotations

from paceline.errors import did_you_mean
from paceline.spec.study import Network

MBIT = 1e6 / 8
"""Bytes a second."""

NETWORKS: dict[str, Network] = {
    name: Network(preset=name, bandwidth_bytes_per_s=rate and rate * MBIT, latency_s=latency, jitter_s=jitter)
    for name, rate, latency, jitter in (
        # Latency none: as the links have it, tens of microseconds in the lab and behind a real switch alike.
        ("100Mbit", 100, None, None),
        ("300Mbit", 300, None, None),
        ("1GbE", 1000, None, None),
        ("2.5GbE", 2500, None, None),
        ("10GbE", 10000, None, None),
        ("25GbE", 25000, None, None),
        # As fast as the links are, beside others in one list.
        ("unlimited", None, None, None),
        # Two sites of a country apart.
        ("WAN", 100, 20e-3, 1e-3),
    )
}
"""Name → links of every host."""


def named_network(name: str) -> Network:
    """The network of that name; ValueError with the nearest one."""
    if name not in NETWORKS:
        raise ValueError(f"no network is called {name!r}; {did_you_mean(name, NETWORKS)}")
    return NETWORKS[name]
