"""Calibrations stored beside the records: where they are, and which of them a question selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.errors import PacelineError, SpecError
from paceline.model.fitting.calibration import Calibration, read_calibrations

FOLDER = "models"
"""Folder of the calibrations in a store."""


def calibrations_path(folder: Path, study: str) -> Path:
    return folder / FOLDER / f"{study}.json"


def kept_calibrations(folder: Path, study: str | None = None) -> list[Calibration]:
    """The calibrations of one study, or all in a store.

    Raises:
        PacelineError: There is none.
    """
    if study is not None:
        return read_calibrations(calibrations_path(folder, study))
    paths = sorted((folder / FOLDER).glob("*.json"))
    if not paths:
        raise PacelineError(
            f"{folder}: nothing is calibrated here",
            hint="calibrate: paceline calibrate STUDY   or guess: paceline predict --model resnet50 --device V100-SXM2",
        )
    return [calibration for path in paths for calibration in read_calibrations(path)]


def chosen(calibrations: Sequence[Calibration], wanted: Mapping[str, str]) -> list[Calibration]:
    """The calibrations whose family has these values.

    Raises:
        SpecError: No family has them.
    """
    kept = [
        calibration
        for calibration in calibrations
        if all(getattr(calibration.family, key) == value for key, value in wanted.items())
    ]
    if not kept:
        asked = ", ".join(f"{key} {value}" for key, value in wanted.items())
        there = ", ".join(dict.fromkeys(calibration.family.label for calibration in calibrations))
        raise SpecError(f"no calibration has {asked}", hint=f"calibrated: {there}")
    return kept
