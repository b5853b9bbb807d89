"""Curves of what the processes of a run used over time, from the looks of the meter, thinned for display. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.record.fact import number
from paceline.record.meter import meter_looks
from paceline.record.record import Record

MOST_POINTS = 300
"""The most points of a curve, which are more than its columns on a screen."""
FEWEST_POINTS = 24
ALL_POINTS = 2400
"""The most points of all curves of a run together, so with many ranks each curve has fewer."""
SHORTEST = 0.5
"""The shortest interval of a rate, in periods of the meter: CPU time is counted in hundredths of a second, so the rate
of a shorter interval is too coarse."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One quantity over time."""

    t_s: tuple[float, ...]
    """The seconds since the meter began."""
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageCurves:
    """The curves of one process with its children."""

    process: str
    cores: Series
    """CPU seconds per second since the previous look."""
    rss_bytes: Series
    """Resident memory."""
    mean_cores: float
    """The mean over all looks, before thinning; so are the two peaks."""
    peak_cores: float
    peak_rss_bytes: float


def usage_of(record: Record) -> list[UsageCurves]:
    """Returns the curves of every process that was seen at least three times, ordered by name."""
    looks = meter_looks(record.meter)
    names = sorted({name for look in looks for name in look["processes"]}, key=_by_number)
    most = min(MOST_POINTS, max(FEWEST_POINTS, ALL_POINTS // max(1, len(names))))
    period = number(record.resources.get("period_s")) or 0.0
    curves = []
    for name in names:
        seen = [
            (look["t_s"], cpu_s, rss_bytes)
            for look in looks
            if (used := look["processes"].get(name)) is not None
            and (cpu_s := used["cpu_s"]) is not None
            and (rss_bytes := used["rss_bytes"]) is not None
        ]
        times = [t_s for t_s, _, _ in seen]
        rates = _rates(times, [cpu_s for _, cpu_s, _ in seen], SHORTEST * period)
        if len(times) > 2 and len(rates.t_s) > 1:
            memory = Series(t_s=tuple(times), values=tuple(rss_bytes for _, _, rss_bytes in seen))
            curves.append(
                UsageCurves(
                    process=name,
                    cores=thinned(rates, most),
                    rss_bytes=thinned(memory, most),
                    mean_cores=float(np.average(rates.values, weights=np.diff([times[0], *rates.t_s]))),
                    peak_cores=max(rates.values),
                    peak_rss_bytes=max(memory.values),
                )
            )
    return curves


def thinned(series: Series, most: int) -> Series:
    """Returns a curve with at most `most` points: the lowest and the highest of each stretch, in their order."""
    count = len(series.t_s)
    if count <= most:
        return series
    values = np.asarray(series.values)
    kept: list[int] = []
    for stretch in np.array_split(np.arange(count), most // 2):
        ends = {int(stretch[values[stretch].argmin()]), int(stretch[values[stretch].argmax()])}
        kept += sorted(ends)
    return Series(t_s=tuple(series.t_s[at] for at in kept), values=tuple(series.values[at] for at in kept))


def _rates(times: Sequence[float], totals: Sequence[float], shortest: float) -> Series:
    """Returns the growth of a counter per second. A child that ends lowers the counter, which counts as no growth."""
    ends, rates = [], []
    before = 0
    for at in range(1, len(times)):
        took = times[at] - times[before]
        if took > 0 and took >= shortest:
            ends.append(times[at])
            rates.append(max(0.0, (totals[at] - totals[before]) / took))
            before = at
    return Series(t_s=tuple(ends), values=tuple(rates))


def _by_number(name: str) -> tuple[str, int]:
    """Orders worker2 before worker10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
