"""How an emulated cluster changes time. After the study, only this module knows the options of a site that do so.

A host of the lab may have only a share of each core, and may run dilated, that is slower than the emulated host. The
study sets both as options of its site, which are part of a trial's id; the pace is therefore derived from the options
and not stored separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.plan.knob_values import KnobValue, KnobValues

CORE_SHARE, DILATION = "core_share", "dilation"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """How fast the hosts of a run are, compared with real time."""

    core_share: float = 1.0
    """Share of each of its cores that a host gets: it computes like a slower host."""
    dilation: float = 1.0
    """Factor by which hosts and links are slowed on purpose; see `true_scale`."""
    emulated: bool = False
    """Whether the hosts are parts of one machine."""

    @classmethod
    def of(cls, facts: Mapping[str, object]) -> Pace:
        """Read the pace from a site's options or from its facts about a run; without emulation neither key is there."""
        return cls(
            core_share=_factor(facts.get(CORE_SHARE)),
            dilation=_factor(facts.get(DILATION)),
            emulated=CORE_SHARE in facts,
        )

    @property
    def true_scale(self) -> float:
        """Factor from recorded seconds to seconds of the emulated cluster."""
        return 1 / self.dilation

    @property
    def is_slowed(self) -> bool:
        """Whether recorded seconds differ from seconds of the emulated cluster."""
        return self.dilation != 1

    @property
    def computing_speed(self) -> float:
        """Computing speed of an emulated host, relative to a host with whole cores."""
        return self.core_share

    @property
    def granted(self) -> float:
        """Share of its cores' real time that a host gets."""
        return self.core_share / self.dilation


def _factor(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and value else 1.0


def at_true_pace(options: KnobValues) -> dict[str, KnobValue]:
    """A site's options without dilation: equal for all trials whose true times are equal."""
    return {name: value for name, value in options.items() if name != DILATION}
