"""Parquet files beside the facts: written whole or not at all, and known by their checksum when they are read.

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

SAMPLES, LAYERS, METER, OUTPUT = "samples", "layers", "meter", "output"
SERIES = (SAMPLES, LAYERS, METER, OUTPUT)
"""The series of a run: each a folder, a field of the record, and a row of the table `series` with its checksum. A new
one needs a name here and a field there, and no migration."""
NO_NUMBERS_REST_ON = frozenset({METER, OUTPUT})
"""Series on which no number rests: they are verified when somebody looks at them, not whenever a record is loaded."""

MAX_STEM = 180
"""File systems allow 255 bytes a name; the temporary name adds host and process id to this."""

FOREIGN_STALE_S = 24 * 3600.0
"""Whether a process on another host still lives cannot be asked; no write of samples takes a day."""

WHOLE, MISSING, DAMAGED = "whole", "missing", "damaged"
"""What a file can be."""


def stem_of(run_id: str) -> str:
    """The run's file name without its ending: the run id, with what a file system may not like quoted."""
    stem = quote(run_id, safe="@+,=")
    if len(stem) <= MAX_STEM:
        return stem
    return f"{stem[: MAX_STEM - 17]}-{hashlib.sha256(run_id.encode()).hexdigest()[:16]}"


def checksum_of(content: bytes | memoryview | pa.Buffer) -> str:
    """By which a file is known: 128 bits find every damage, and nobody forges a file beside its own row."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def write_temporary(path: Path, table: pa.Table) -> tuple[Path, str]:
    """Write next to `path`, under a name that tells the writing process, and have it on the disk.

    Returns:
        The temporary file and the checksum of its content.

    Raises:
        OSError: no space, no permission; nothing is left behind.
    """
    # Made in memory first: one plain write then either fits or gives the system's own error.
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    content = buffer.getvalue()
    temporary = path.with_name(f".{path.name}.{_host()}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary, checksum_of(content)


def keep_entries(folder: Path) -> None:
    """Have the names of the folder's files on the disk: a rename alone is in memory only."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def state_of(path: Path | str, rows: int, checksum: str | None) -> str:
    """WHOLE, MISSING or DAMAGED: the bytes that were written, or not. Cheap: nothing is decoded where a checksum is
    known.
    """
    try:
        content = _content(path)
    except FileNotFoundError:
        return MISSING
    except OSError:
        return DAMAGED
    if checksum is None:
        return WHOLE if _decoded(content, rows) is not None else DAMAGED
    return WHOLE if checksum_of(content) == checksum else DAMAGED


def read_table(path: Path | str, rows: int, checksum: str | None) -> pa.Table | None:
    """The table, or None when the file is missing, damaged, or not the one that was written.

    Args:
        checksum: of the file that was written; None where none is known, and rows must do.
    """
    try:
        content = _content(path)
    except OSError:
        return None
    if checksum is not None and checksum_of(content) != checksum:
        return None
    return _decoded(content, rows)


def _content(path: Path | str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - ten thousand paths are not made into objects for this
        return file.read()


def _decoded(content: bytes, rows: int) -> pa.Table | None:
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            # A handful of columns of a small file: threads cost more than they bring.
            table = file.read(use_threads=False)
    except (OSError, pa.ArrowException):
        return None
    return table if table.num_rows == rows else None


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
