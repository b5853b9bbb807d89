"""Finished numbers as a person reads them: a value, its interval, no more digits than the interval earns.

The only place where SI becomes pretty. Receives quantities; computes no statistics.
"""

from __future__ import annotations

import math
from dataclasses import replace

from paceline.stats import LEAST_RUNS
from paceline.stats.estimate import Estimate

DIGITS_ALONE = 3
"""Significant digits of a number without interval: more would claim what one run cannot know."""
DIGITS_MOST = 4
"""No number gets more significant digits than this, however narrow its interval."""
NOTHING = "-"
"""Stands where there is no number."""

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def known(quantity: Estimate | None) -> Estimate:
    """The quantity, where the caller has made sure that there is one."""
    if quantity is None:
        raise ValueError("there is no such number here: choose what was measured and may be ranked")
    return quantity


def plain(quantity: Estimate | None) -> str:
    """E.g. "812 (801–823)"."""
    return NOTHING if quantity is None else _text(quantity, "")


def over_runs(quantity: Estimate | None) -> str:
    """The same, and the reason if there is no interval: "106 (2 runs: no interval)"."""
    if quantity is None or quantity.low is not None or quantity.n_runs is None or quantity.n_runs >= LEAST_RUNS:
        return plain(quantity)
    return f"{plain(quantity)} ({counted(quantity.n_runs, 'run')}: no interval)"


def counted(number: int, what: str) -> str:
    """E.g. "1 run", "3 runs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def seconds(quantity: Estimate | None) -> str:
    """E.g. "45.9 ms (45.2–46.6)"."""
    return _scaled(quantity, _SECONDS)


def seconds_alone(quantity: Estimate) -> str:
    """Without its interval, e.g. "45.9 ms"."""
    return seconds(replace(quantity, low=None, high=None))


def size(quantity: Estimate | None) -> str:
    """E.g. "412 MiB (410–414)"."""
    return _scaled(quantity, _BYTES)


def percent(quantity: Estimate | None) -> str:
    """E.g. "92.7 % (92.4–93.1)"."""
    return NOTHING if quantity is None else _text(quantity.times(100), " %")


def share(fraction: float) -> str:
    """E.g. "31 %"; something that is there but small is not called nothing."""
    return "<1 %" if 0 < fraction < 0.005 else f"{fraction * 100:.0f} %"


def interval(quantity: Estimate, factor: float = 1.0) -> str | None:
    """The two ends, e.g. "1.27–1.35", or None with fewer than three runs."""
    scaled = quantity.times(factor)
    if scaled.low is None or scaled.high is None:
        return None
    decimals = _decimals(scaled)
    return f"{scaled.low:.{decimals}f}–{scaled.high:.{decimals}f}"


def level(fraction: float) -> str:
    """How often intervals of a level are right, e.g. "95 %"."""
    return f"{fraction * 100:g} %"


def value(quantity: Estimate, factor: float = 1.0) -> str:
    """The value alone, with the digits that its interval earns."""
    scaled = quantity.times(factor)
    return f"{scaled.value:.{_decimals(scaled)}f}"


def p_value(p: float) -> str:
    """E.g. "p<0.001", "p=0.03"."""
    return "p<0.001" if p < 0.001 else f"p={p:.2g}"


def _scaled(quantity: Estimate | None, units: tuple[tuple[float, str], ...]) -> str:
    if quantity is None:
        return NOTHING
    factor, unit = next(((f, u) for f, u in units if abs(quantity.value) >= f), units[-1])
    return _text(quantity.times(1 / factor), f" {unit}")


def _text(quantity: Estimate, unit: str) -> str:
    ends = interval(quantity)
    # Ends that print like the value (a law without jitter, a base that is 1 by definition) say nothing more.
    shown = value(quantity)
    return f"{shown}{unit}" if ends is None or ends == f"{shown}–{shown}" else f"{shown}{unit} ({ends})"


def _decimals(quantity: Estimate) -> int:
    """Enough to show two digits of the half-width."""
    magnitude = _magnitude(quantity.value)
    half = 0.0 if quantity.low is None or quantity.high is None else (quantity.high - quantity.low) / 2
    if half <= abs(quantity.value) * 10.0**-DIGITS_MOST:
        return max(0, DIGITS_ALONE - 1 - magnitude)
    return max(0, min(1 - _magnitude(half), DIGITS_MOST - 1 - magnitude))


def _magnitude(number: float) -> int:
    return math.floor(math.log10(abs(number))) if number else 0
