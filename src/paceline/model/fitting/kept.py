"""Calibrations that are kept beside the records of a store: where, and which of them a question is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.errors import PacelineError, SpecError
from paceline.model.fitting.calibration import Calibration, read_calibrations

FOLDER = "models"
"""Of calibrations, in a store."""


def calibrations_path(folder: Path, study: str) -> Path:
    return folder / FOLDER / f"{study}.json"


def kept_calibrations(folder: Path, study: str | None = None) -> list[Calibration]:
    """Calibrations of one study, or all of a store.

    Raises:
        PacelineError: there is none.
    """
    if study is not None:
        return read_calibrations(calibrations_path(folder, study))
    paths = sorted((folder / FOLDER).glob("*.json"))
    if not paths:
        raise PacelineError(
            f"{folder}: nothing is calibrated here",
            hint="calibrate: paceline calibrate STUDY   or guess: paceline predict --model resnet50 --device V100-SXM2",
        )
    return [one for path in paths for one in read_calibrations(path)]


def chosen(calibrations: Sequence[Calibration], wanted: Mapping[str, str]) -> list[Calibration]:
    """Those whose family has these values.

    Raises:
        SpecError: none has.
    """
    kept = [one for one in calibrations if all(getattr(one.family, key) == value for key, value in wanted.items())]
    if not kept:
        asked = ", ".join(f"{key} {value}" for key, value in wanted.items())
        there = ", ".join(dict.fromkeys(one.family.label for one in calibrations))
        raise SpecError(f"no calibration has {asked}", hint=f"there are: {there}")
    return kept
