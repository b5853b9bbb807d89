"""Parquet files beside the facts: written completely or not at all, and verified by their checksum when read.

Decides their names and the order of system calls that makes them survive a kill. Knows nothing about SQLite; the store
decides, under its lock, which file belongs to a run.
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
"""The series of a run. Each has a folder, a field of the record, and a row of the table `series` with its checksum. A
new series needs a name here and a field of the record, but no migration."""
VERIFIED_WHEN_READ = frozenset({METER, OUTPUT})
"""No number depends on these series, so they are verified when they are read and not when a record is loaded."""

MAX_STEM = 180
"""File systems allow 255 bytes per name, and the temporary name adds the host and the process id."""

FOREIGN_STALE_S = 24 * 3600.0
"""Whether a process on another host is alive is unknown here, but no write of samples takes a day."""

WHOLE, MISSING, DAMAGED = "whole", "missing", "damaged"
"""The possible states of a file."""


def stem_of(run_id: str) -> str:
    """Returns the file name of a run without its ending: the run id, with special characters quoted."""
    stem = quote(run_id, safe="@+,=")
    if len(stem) <= MAX_STEM:
        return stem
    return f"{stem[: MAX_STEM - 17]}-{hashlib.sha256(run_id.encode()).hexdigest()[:16]}"


def checksum_of(content: bytes | memoryview | pa.Buffer) -> str:
    """Returns the checksum of a file. 128 bits are enough to find damage; forgery is not a concern here."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def write_temporary(path: Path, table: pa.Table) -> tuple[Path, str]:
    """Writes a table next to `path`, under a name that identifies the writing process, and flushes it to the disk.

    Returns:
        The temporary file and the checksum of its content.

    Raises:
        OSError: there is no space or no permission; nothing is left behind.
    """
    # The content is made in memory first, so that a full disk gives the error of the system and not one of Parquet.
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
    """Flushes the names of the files in a folder to the disk; a rename alone changes only memory."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def state_of(path: Path | str, rows: int, checksum: str | None) -> str:
    """Returns WHOLE, MISSING or DAMAGED. The file is decoded only if its checksum is unknown."""
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
    """Returns the table of a file; None if the file is missing or damaged.

    Args:
        path: the file.
        rows: the number of rows that were written.
        checksum: the checksum of the file that was written; None if it is unknown, so that only the rows are compared.
    """
    try:
        content = _content(path)
    except OSError:
        return None
    if checksum is not None and checksum_of(content) != checksum:
        return None
    return _decoded(content, rows)


def _content(path: Path | str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - making Path objects of ten thousand names takes too long
        return file.read()


def _decoded(content: bytes, rows: int) -> pa.Table | None:
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            # The files are small and have few columns, so threads would cost more time than they save.
            table = file.read(use_threads=False)
    except (OSError, pa.ArrowException):
        return None
    return table if table.num_rows == rows else None


def abandoned_temporaries(folder: Path) -> list[Path]:
    """Returns the temporary files whose writing process has ended."""
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
