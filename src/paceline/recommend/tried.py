"""Whether what was predicted came true: choices that were tried, with what was said of them before. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.explain.finding import Range
from paceline.recommend.candidates import Candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """One choice, in samples a second."""

    trial: str
    """Id."""
    label: str
    predicted: Range
    measured: Range | None
    """None: its runs did not end well."""

    @property
    def inside(self) -> bool | None:
        """Whether the measured value lies in the predicted interval; None where there is none."""
        if self.measured is None:
            return None
        return self.predicted.low <= self.measured.value <= self.predicted.high

    def to_json(self) -> dict[str, object]:
        return {
            "trial": self.trial,
            "label": self.label,
            "predicted": self.predicted.to_json(),
            "measured": self.measured.to_json() if self.measured else None,
            "inside": self.inside,
        }


def outcomes(predicted: Mapping[str, tuple[str, Range]], measured: Sequence[Candidate]) -> list[Tried]:
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
        )
        for key, (label, said) in predicted.items()
    ]
