"""Parquet files beside the facts: written whole or not at all, read with a shrug when they are damaged.

Owns their names and the order of system calls that makes them survive a kill. Knows nothing of SQLite and
does not decide which file belongs to a run: `store` does, under its lock.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path
from urllib.parse import quote

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

SAMPLES, LAYERS = "samples", "layers"
"""The two folders, named after what they hold."""

MAX_STEM = 180
"""File systems allow 255 bytes a name; the temporary name adds host and process id to this."""

FOREIGN_STALE_S = 24 * 3600.0
"""Whether a process on another host still lives cannot be asked; no write of samples takes a day."""


def stem_of(run_id: str) -> str:
    """The run's file name without its ending: the run id, with what a file system may not like quoted."""
    stem = quote(run_id, safe="@+,=")
    if len(stem) <= MAX_STEM:
        return stem
    return f"{stem[: MAX_STEM - 17]}-{hashlib.sha256(run_id.encode()).hexdigest()[:16]}"


def write_temporary(path: Path, table: pa.Table) -> Path:
    """Write next to `path`, under a name that tells the writing process, and have it on the disk.

    Raises:
        OSError: no space, no permission; nothing is left behind.
    """
    # Made in memory first: one plain write then either fits or gives the system's own error.
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    temporary = path.with_name(f".{path.name}.{_host()}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def settle(temporary: Path, path: Path) -> None:
    """Give the temporary file its name, and have the folder's entry on the disk too."""
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_table(path: Path, rows: int) -> pa.Table | None:
    """The table, or None when the file is missing, damaged, or not the one that was written."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (OSError, pa.ArrowException):
        return None
    return table if table.num_rows == rows else None


def readable(path: Path) -> bool:
    """Whether the file's footer can be read: cheap, and enough to keep one bad file out of a query."""
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def abandoned_temporaries(folder: Path) -> list[Path]:
    """Temporary files whose writer is gone."""
    return [path for path in folder.glob(".*.tmp") if _is_abandoned(path)]


def _is_abandoned(path: Path) -> bool:
    parts = path.name.rsplit(".", 3)
    if len(parts) != 4 or not parts[2].isdigit():
        return False
    host, pid = parts[1], int(parts[2])
    try:
        if host != _host():
            return time.time() - path.stat().st_mtime > FOREIGN_STALE_S
    except FileNotFoundError:
        return False
    return not psutil.pid_exists(pid)


def _host() -> str:
    return quote(socket.gethostname(), safe="").replace(".", "-")
