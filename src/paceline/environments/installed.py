"""What is installed in a site-packages folder, read from its dist-info folders without starting a process."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from paceline.environments.lock import normalized


def installed_packages(folders: Iterable[Path]) -> dict[str, str]:
    """Name → version of all distributions in these folders; as for Python, the first folder wins."""
    versions: dict[str, str] = {}
    for folder in folders:
        for entry in _metadata_folders(folder):
            name, _, version = entry.removesuffix(".dist-info").removesuffix(".egg-info").partition("-")
            # Old egg-info names carry the Python version behind another dash.
            versions.setdefault(normalized(name), version.partition("-py")[0])
    return dict(sorted(versions.items()))


def record_digests(folder: Path) -> dict[str, str]:
    """Name → digest of its RECORD, which holds the checksum of each of its files.

    The digest differs between two builds of one version, and after a distribution was installed again.
    """
    digests = {}
    for entry in _metadata_folders(folder):
        record = folder / entry / "RECORD"
        name = normalized(entry.partition("-")[0])
        digests[name] = hashlib.sha256(record.read_bytes()).hexdigest()[:16] if record.is_file() else ""
    return dict(sorted(digests.items()))


def damaged_files(folder: Path) -> list[str]:
    """Files that a RECORD names and that are missing or of another size.

    Sizes are compared and not checksums, because reading a gigabyte before each run would cost seconds, and the usual
    damage (a file deleted, or truncated by a full disk or a power failure) shows in the sizes.
    """
    damaged = []
    for entry in _metadata_folders(folder):
        record = folder / entry / "RECORD"
        if not record.is_file():
            continue
        with record.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if len(row) != 3 or not row[2] or row[0].endswith(".pyc"):
                    continue
                try:
                    size = os.stat(f"{folder}/{row[0]}").st_size  # noqa: PTH116  17 000 files: Path costs as much as stat
                except OSError:
                    size = -1
                if size != int(row[2]):
                    damaged.append(row[0])
    return damaged


def _metadata_folders(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208  names are all that is needed
    except OSError:
        return []
    # A name that starts with ~ is what pip leaves of an interrupted removal.
    return sorted(n for n in names if n.endswith((".dist-info", ".egg-info")) and not n.startswith("~"))
