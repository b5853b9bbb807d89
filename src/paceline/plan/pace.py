"""What an emulated cluster does to time: the only place right of the study that knows the site's settings for it.

A host of the lab may have a share of a core, and may live in slow motion. The study asks for both as options of its
site, whose content a trial's id is a hash of; so the pace is derived from the options and stored nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CORE_SHARE, DILATION = "core_share", "dilation"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """How fast the hosts of a run live."""

    core_share: float = 1.0
    """Share of each of its cores that a host gets: it computes as a slower host would."""
    dilation: float = 1.0
    """Slow motion: hosts and links are so many times slower by design; see `true_scale`."""
    emulated: bool = False
    """Whether the hosts are parts of one machine."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Pace:
        """From a site's options, or from what a site says of a run; a site that emulates nothing has neither key."""
        return cls(
            core_share=float(told.get(CORE_SHARE) or 1.0),
            dilation=float(told.get(DILATION) or 1.0),
            emulated=CORE_SHARE in told,
        )

    @property
    def true_scale(self) -> float:
        """Factor from seconds that were recorded to seconds of the cluster that is emulated."""
        return 1 / self.dilation

    @property
    def computing_speed(self) -> float:
        """Of a host of the cluster that is emulated, against one with whole cores."""
        return self.core_share

    @property
    def granted(self) -> float:
        """Share of its cores' real time that a host gets."""
        return self.core_share / self.dilation


def at_true_pace(options: Mapping[str, Any]) -> dict[str, Any]:
    """A site's options without slow motion: the same for all trials whose true times are the same."""
    return {name: value for name, value in options.items() if name != DILATION}


def true_time_words(scales: Iterable[float]) -> str:
    """Which time numbers are in, of trials with these true scales; "" where it is the time that passed."""
    slowed = sorted({1 / scale for scale in scales} - {1.0})
    if not slowed:
        return ""
    factors = " or ".join(f"{factor:g}" for factor in slowed)
    return f"times as on the emulated cluster: the lab's dilation of {factors} is divided out"
