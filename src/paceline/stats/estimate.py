"""A number that is not exact: its value, where the true one plausibly lies, and how that is known.

Measured means, ratios of two trials, predictions and promised gains are all of this one type, so that tables, figures
and JSON show them alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from paceline.stats.known_by import MEASURED, KnownBy

LEVEL = 0.95
"""Confidence of every measured interval unless another is asked for: what readers take an error bar to mean."""

MODELLED_LEVEL = 0.90
"""Confidence of what a model says, and of what is ranked with it: nine held-out trials are enough for this quantile of
a model's errors; for 95 % it would take nineteen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """One number with its interval."""

    value: float
    low: float | None
    """Lower end; None where the spread is not known."""
    high: float | None
    """Upper end; None where the spread is not known."""
    level: float
    """Share of such intervals that contain the true value: LEVEL of what was measured, MODELLED_LEVEL of what a
    model says."""
    unit: str
    """SI: "s", "samples/s", "B"; "1" for a plain ratio."""
    by: KnownBy
    n_runs: int | None
    """Runs of the trial that it rests on; None where it rests on the runs of several, by a model."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends; None where the spread is not known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends, of a number that has them.

        Raises:
            ValueError: the spread is not known.
        """
        if self.ends is None:
            raise ValueError(f"{self.value} {self.unit}: no interval is known")
        return self.ends

    @property
    def relative_half_width(self) -> float | None:
        """Half the interval over the value: the "± 2 %" of a report. None without interval or at value 0."""
        if self.ends is None or self.value == 0:
            return None
        return (self.ends[1] - self.ends[0]) / 2 / abs(self.value)

    def contains(self, number: float) -> bool | None:
        """Whether a number lies in the interval; None where there is none."""
        return None if self.ends is None else self.ends[0] <= number <= self.ends[1]

    def times(self, factor: float, unit: str | None = None) -> Estimate:
        """The same knowledge on another scale."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return replace(self, value=self.value * factor, low=low, high=high, unit=unit or self.unit)

    def over(self, number: float, unit: str) -> Estimate:
        """A number divided by this one."""
        low, high = (None if end is None else number / end for end in (self.high, self.low))
        return replace(self, value=number / self.value, low=low, high=high, unit=unit)

    def at_most(self, number: float) -> Estimate:
        """The same, if nothing can be above a number; a value that is above stays."""
        return self if self.high is None else replace(self, high=max(self.value, min(self.high, number)))

    def to_json(self) -> dict[str, object]:
        return {
            "value": finite(self.value),
            "low": finite(self.low),
            "high": finite(self.high),
            "level": self.level,
            "unit": self.unit,
            "by": self.by,
            "n_runs": self.n_runs,
        }


def exactly(value: float, unit: str, n_runs: int | None, by: KnownBy = MEASURED) -> Estimate:
    """A number that is known as it is: the base of a ratio against itself."""
    return Estimate(value=value, low=value, high=value, level=LEVEL, unit=unit, by=by, n_runs=n_runs)


def finite(number: float | None) -> float | None:
    """JSON has no infinity and no NaN: what is not a number is null."""
    return number if number is not None and math.isfinite(number) else None
