"""The forecast of one family over several numbers of workers, as `paceline predict` answers it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from paceline.model.equations.conditions import Conditions
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.expenses import Rates, expenses_of
from paceline.model.forecast.predict import Prediction, knee, predict, worth_paying
from paceline.model.forecast.simulated_changes import Change
from paceline.model.forecast.what_if import ChangeEffect, changed, single_changes


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingForecast:
    """Predictions of one family, and what they say together."""

    calibration: Calibration
    predictions: tuple[Prediction, ...]
    """One per number of workers, in the order that was asked for."""
    without_change: tuple[Prediction, ...]
    """The same without the changes that were asked about; () if there were none."""
    helps_most: tuple[ChangeEffect, ...]
    """Single changes for the last number of workers, best first; () if they were not asked for."""

    @property
    def label(self) -> str:
        return self.calibration.family.label

    @property
    def knee(self) -> int | None:
        return knee(self.predictions)

    @property
    def worth_paying(self) -> int:
        return worth_paying(self.predictions)

    def to_json(self, rates: Rates) -> dict[str, object]:
        return {
            "family": asdict(self.calibration.family),
            "by": self.calibration.by,
            "rows": [
                {**prediction.to_json(), **expenses_of(prediction, rates).to_json()} for prediction in self.predictions
            ],
            "without_change": [prediction.to_json() for prediction in self.without_change],
            "knee": self.knee,
            "worth_paying": self.worth_paying,
            "helps_most": [asdict(effect) for effect in self.helps_most],
            "unidentified": list(self.calibration.unidentified),
            "remarks": list(self.calibration.remarks),
        }


def forecast(
    calibration: Calibration,
    sizes: Sequence[Conditions],
    changes: Sequence[Change] = (),
    *,
    rank_changes: bool = False,
) -> ScalingForecast:
    """Predict the family at all sizes, with these changes.

    Args:
        rank_changes: Whether to find the single change that helps most at the last size.
    """
    return ScalingForecast(
        calibration=calibration,
        predictions=tuple(predict(*changed(calibration, conditions, changes)) for conditions in sizes),
        without_change=tuple(predict(calibration, conditions) for conditions in sizes) if changes else (),
        helps_most=tuple(single_changes(calibration, sizes[-1])) if rank_changes else (),
    )
