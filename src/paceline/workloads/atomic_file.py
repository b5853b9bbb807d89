"""Write a file so that a reader sees all of it or nothing, and know its checksum.

For generated inputs (initial weights, synthetic samples) that several runs may ask for at once. This module owns how a
file is written; it must not know what is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


class HashingWriter:
    """A binary file that can only be appended to, and that hashes every byte written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> None:
        """Append the bytes and add them to the checksum."""
        self._file.write(data)
        self._digest.update(data)

    @property
    def sha256(self) -> str:
        """Checksum of all that was written so far, in hexadecimal."""
        return self._digest.hexdigest()


@contextmanager
def atomic_file(path: Path) -> Iterator[HashingWriter]:
    """Open a temporary file beside `path`; when the block ends well, fsync it and rename it to `path`."""
    # The process id separates two writers of the same file; the last rename wins, and both have the same content.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield HashingWriter(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a crash may keep the content and lose the name
    finally:
        os.close(folder)


def write_json(path: Path, data: Mapping[str, object]) -> None:
    """Write an index. It is written last, so that its presence shows that the files which it describes are complete."""
    with atomic_file(path) as file:
        file.write(json.dumps(data, indent=1).encode() + b"\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """The index as it was stored, or None if there is none or it cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
