"""Networks by name or bandwidth. Rates are those of the wire; programs get about 5 % less, as on real links."""

from __future__ import annotations

from paceline.errors import did_you_mean
from paceline.spec.study import Network
from paceline.units import BYTES_PER_SECOND, parse_quantity

MBIT = 1e6 / 8
"""Bytes per second of 1 Mbit/s."""

NETWORKS: dict[str, Network] = {
    name: Network(preset=name, bandwidth_bytes_per_s=rate and rate * MBIT, latency_s=latency, jitter_s=jitter)
    for name, rate, latency, jitter in (
        # No latency is added: links have tens of microseconds, in the lab as behind a real switch.
        ("100Mbit", 100, None, None),
        ("300Mbit", 300, None, None),
        ("1GbE", 1000, None, None),
        ("2.5GbE", 2500, None, None),
        ("10GbE", 10000, None, None),
        ("25GbE", 25000, None, None),
        # Not limited; the name allows it in a list with other networks.
        ("unlimited", None, None, None),
        # Two sites in one country.
        ("WAN", 100, 20e-3, 1e-3),
    )
}
"""Name → links of every host."""


def read_network(text: str) -> Network:
    """The network of that name, or one of that bandwidth ("150Mbit").

    Names take precedence: "100Mbit" is a preset, and the ids of its trials contain that name.

    Raises:
        ValueError: the text is neither; the message has the nearest name.
    """
    if text in NETWORKS:
        return NETWORKS[text]
    if not text.strip().endswith(tuple(BYTES_PER_SECOND)):
        raise ValueError(
            f"no network is called {text!r}; {did_you_mean(text, NETWORKS)}; or give a bandwidth, such as 150Mbit"
        )
    bandwidth = parse_quantity(text, BYTES_PER_SECOND)
    if bandwidth <= 0:
        raise ValueError(f"{text!r} should be above zero")
    return Network(bandwidth_bytes_per_s=bandwidth)
