"""What one core of a machine was measured to do at best: kept beside the records, one small file per machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from paceline.workloads.atomic_file import read_json, write_json


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """Of one core, while the others are idle."""

    flops_per_s: float
    """Single precision, in a product of large matrices."""
    bytes_per_s: float
    """Read and written, in a copy far larger than its caches."""
    machine: str
    """Its id."""
    measured: float
    """Unix time."""


def peak_path(folder: Path, machine: str) -> Path:
    return folder / f"peak.{machine}.json"


def write_peak(folder: Path, peak: Peak) -> Path:
    """Keep it, whole or not at all."""
    path = peak_path(folder, peak.machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, asdict(peak))
    return path


def read_peak(folder: Path, machine: str) -> Peak | None:
    """What was kept; None where nothing was, or it cannot be read."""
    kept = read_json(peak_path(folder, machine))
    try:
        return None if kept is None else Peak(**kept)
    except TypeError:  # of another version
        return None
