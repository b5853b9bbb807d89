"""The measured peak of one core of a machine, in one small file per machine beside the records."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from paceline.workloads.atomic_file import read_json, write_json


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """The peak of one core while the others are idle."""

    flops_per_s: float
    """In single precision, in a product of large matrices."""
    bytes_per_s: float
    """Bytes read and written, in a copy far larger than the caches."""
    machine: str
    """The id of the machine."""
    measured: float
    """The Unix time of the measurement."""


def peak_path(folder: Path, machine: str) -> Path:
    return folder / f"peak.{machine}.json"


def write_peak(folder: Path, peak: Peak) -> Path:
    """Writes the peak of a machine, completely or not at all, and returns the file."""
    path = peak_path(folder, peak.machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(peak))
    return path


def read_peak(folder: Path, machine: str) -> Peak | None:
    """Returns the peak of a machine; None if it was not measured or cannot be read."""
    stored = read_json(peak_path(folder, machine))
    try:
        return None if stored is None else Peak(**stored)
    except TypeError:  # written by another version
        return None
