"""A measured quantity as results carry it: value, interval, unit, number of runs. Knows no record."""

from __future__ import annotations

import math
from dataclasses import dataclass

from paceline.stats import LEAST_RUNS, Interval, Ratio


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One number over the runs of a trial, with its 95 % interval."""

    value: float
    """The mean over runs."""
    low: float | None
    """Lower end; None below three runs, which know too little of their spread."""
    high: float | None
    """Upper end; None below three runs."""
    unit: str
    """SI: "s", "samples/s", "B"; "1" for a plain ratio."""
    n_runs: int
    """Runs it rests on."""

    def times(self, factor: float, unit: str | None = None) -> Quantity:
        """The same knowledge on another scale."""
        return Quantity(
            value=self.value * factor,
            low=None if self.low is None else self.low * factor,
            high=None if self.high is None else self.high * factor,
            unit=unit or self.unit,
            n_runs=self.n_runs,
        )

    def to_json(self) -> dict[str, object]:
        return {
            "value": finite(self.value),
            "low": finite(self.low),
            "high": finite(self.high),
            "unit": self.unit,
            "n_runs": self.n_runs,
        }


def from_interval(interval: Interval, unit: str) -> Quantity:
    return _over_runs(interval.value, interval.low, interval.high, unit, interval.n_runs)


def from_ratio(ratio: Ratio, n_runs: int) -> Quantity:
    return _over_runs(ratio.value, ratio.low, ratio.high, "1", n_runs)


def _over_runs(value: float, low: float | None, high: float | None, unit: str, n_runs: int) -> Quantity:
    if n_runs < LEAST_RUNS:
        low = high = None
    return Quantity(value=value, low=low, high=high, unit=unit, n_runs=n_runs)


def finite(number: float | None) -> float | None:
    """JSON has no infinity and no NaN: what is not a number is null."""
    return number if number is not None and math.isfinite(number) else None
