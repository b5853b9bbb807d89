from __future__ import annotations

import pytest

from paceline.units import (
    BYTES,
    BYTES_PER_SECOND,
    FRACTION,
    SECONDS,
    format_bytes,
    format_seconds,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "units", "value"),
    [
        ("200us", SECONDS, 200e-6),
        ("1.5 ms", SECONDS, 1.5e-3),
        ("10min", SECONDS, 600.0),
        ("25MB", BYTES, 25e6),
        ("25MiB", BYTES, 25 * 2**20),
        ("1Gbit", BYTES_PER_SECOND, 125e6),
        ("1e3 kB/s", BYTES_PER_SECOND, 1e6),
        ("2%", FRACTION, 0.02),
    ],
)
def test_quantity_becomes_si(text: str, units: dict[str, float], value: float) -> None:
    assert parse_quantity(text, units) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "fast", "1 Mb", "1 mib", True, "1e", "--3s"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|unit"):
        parse_quantity(text, BYTES)


def test_bare_number_needs_leave() -> None:
    assert parse_quantity(3, SECONDS, bare=1.0) == 3
    with pytest.raises(ValueError, match="no unit"):
        parse_quantity(3, SECONDS)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2e-6, "2 µs"), (0.0412, "41.2 ms"), (3.21, "3.21 s"), (250, "4 min 10 s"), (7260, "2 h 01 min")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_sizes_read_well() -> None:
    assert [format_bytes(n) for n in (512, 2048, 3 * 2**20, 1.5 * 2**30)] == [
        "512 B",
        "2 KiB",
        "3 MiB",
        "1.5 GiB",
    ]
