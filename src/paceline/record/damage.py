"""Doubts about runs whose series files are missing or damaged."""

from __future__ import annotations

from paceline.record.doubt_codes import DoubtCode
from paceline.record.record import Doubt
from paceline.record.sample_files import DAMAGED, LAYERS, MISSING, SAMPLES

_UNUSABLE: dict[tuple[str, str], DoubtCode] = {
    (SAMPLES, MISSING): "samples-missing",
    (SAMPLES, DAMAGED): "samples-damaged",
    (LAYERS, MISSING): "layers-missing",
    (LAYERS, DAMAGED): "layers-damaged",
}


def unusable_series(name: str, path: str, state: str) -> Doubt:
    """Returns the doubt about a run that has no numbers because one of its series cannot be used."""
    problem = "is not what was written: its checksum differs" if state == DAMAGED else "is missing"
    return Doubt(
        code=_UNUSABLE[name, state],
        message=f"{path} {problem}, so this run has no {name} to derive numbers from",
        hint="restore the file from a backup, or measure again in another store: --store DIR",
    )
