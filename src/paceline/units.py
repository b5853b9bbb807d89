"""Quantities with units as people write them in a study: "25MB", "200us", "1Gbit", "2%".

Inside Paceline all quantities are in SI units (seconds, bytes, bytes per second, fractions); only `report` converts
them back for people. Decimal prefixes are powers of ten, binary ones (KiB, MiB, GiB) powers of two: 1 MB is not 1 MiB,
and the difference is 5 %. This module imports nothing else of Paceline.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s].*?)?\s*$")

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}
BYTES_PER_SECOND = {
    "bit": 1 / 8,
    "bit/s": 1 / 8,
    "kbit": 1e3 / 8,
    "kbit/s": 1e3 / 8,
    "Mbit": 1e6 / 8,
    "Mbit/s": 1e6 / 8,
    "Gbit": 1e9 / 8,
    "Gbit/s": 1e9 / 8,
    "B/s": 1.0,
    "kB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
}
FRACTION = {"%": 0.01}


def parse_quantity(given: object, units: dict[str, float], *, bare: float | None = None) -> float:
    """Read a number with a unit.

    Args:
        given: a text or a number, as a person wrote it; any other value is refused.
        units: unit → its factor.
        bare: the factor for a number without a unit; None: a unit is required.

    Raises:
        ValueError: not a number, no unit, or a unit of another kind; the message names those that fit.
    """
    if isinstance(given, bool):
        raise ValueError(f"{given!r} is not a quantity")
    match = _NUMBER.match(str(given))
    if not match:
        raise ValueError(f"{given!r} is not a number with a unit such as {_examples(units)}")
    number, unit = float(match[1]), match[2]
    if math.isinf(number):
        raise ValueError(f"{given!r} is more than there are numbers for")
    if unit is None:
        if bare is None:
            raise ValueError(f"{given!r} has no unit; write it with one of {_examples(units)}")
        return number * bare
    if unit not in units:
        raise ValueError(f"{given!r} has the unit {unit!r}; here it takes one of {_examples(units)}")
    return number * units[unit]


def _examples(units: dict[str, float]) -> str:
    return ", ".join(units)


def format_seconds(seconds: float) -> str:
    """A duration as a person reads it: 412 ms, 3.2 s, 4 min 10 s."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def format_count(number: float) -> str:
    """Four figures without an exponent: 0.1234, 12.34, 1234, 123400."""
    return f"{number:.4g}" if abs(number) < 1e4 else f"{float(f'{number:.4g}'):.0f}"


def format_bytes(count: float) -> str:
    """A size as a person reads it, in binary units: 812 KiB, 1.2 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"
