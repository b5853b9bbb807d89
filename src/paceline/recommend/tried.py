"""Compares predictions with later runs of the same configurations. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.recommend.candidates import Candidate
from paceline.stats.estimate import Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """One recommended configuration that was tried."""

    trial: str
    """The id of the trial; its identity if its runs failed."""
    label: str
    predicted: Estimate
    """The predicted samples per second."""
    measured: Estimate | None
    """The measured samples per second; None if its runs failed."""
    simulated: bool = False
    """Whether the times of its runs are simulated."""

    @property
    def inside(self) -> bool | None:
        """Whether the measured value lies in the predicted interval; None if there is no measured value."""
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
    """Joins predictions with what was measured since.

    Args:
        predicted: identity → label and prediction.
        measured: all configurations measured by now.
    """
    runs = {candidate.identity: candidate for candidate in measured}
    return [
        Tried(
            trial=runs[key].trial.id if key in runs else key,
            label=label,
            predicted=prediction,
            measured=runs[key].throughput if key in runs else None,
            simulated=key in runs and runs[key].trial.framework.simulated,
        )
        for key, (label, prediction) in predicted.items()
    ]
