"""Whether what was predicted came true: choices that were tried, with what was said of them before. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.recommend.candidates import Candidate
from paceline.stats.estimate import Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """One choice, in samples a second."""

    trial: str
    """Id."""
    label: str
    predicted: Estimate
    measured: Estimate | None
    """None: its runs did not end well."""
    simulated: bool = False
    """Whether these runs drew their times from a law."""

    @property
    def inside(self) -> bool | None:
        """Whether the measured value lies in the predicted interval; None where there is none."""
        if self.measured is None:
            return None
        return self.predicted.contains(self.measured.value)

    def to_json(self) -> dict[str, object]:
        return {
            "trial": self.trial,
            "label": self.label,
            "predicted": self.predicted.to_json(),
            "measured": self.measured.to_json() if self.measured else None,
            "simulated": self.simulated,
            "inside": self.inside,
        }


def outcomes(predicted: Mapping[str, tuple[str, Estimate]], measured: Sequence[Candidate]) -> list[Tried]:
    """What became of predictions.

    Args:
        predicted: identity → label and what was said of it.
        measured: all that has been measured by now.
    """
    found = {one.identity: one for one in measured}
    return [
        Tried(
            trial=found[key].trial.id if key in found else key,
            label=label,
            predicted=said,
            measured=found[key].throughput if key in found else None,
            simulated=key in found and found[key].trial.framework.simulated,
        )
        for key, (label, said) in predicted.items()
    ]
