"""Series of a run that are stored in files and read at the first access.

Most commands need the facts of all records but the samples of few. Knows nothing about the store; `sample_files` reads
and verifies the files.
"""

from __future__ import annotations

import pyarrow as pa

from paceline.record.sample_files import read_table


class SeriesFile:
    """The file of one series of a recorded run, with what it must contain."""

    __slots__ = ("checksum", "derived", "path", "rows")

    def __init__(self, path: str, rows: int, checksum: str | None) -> None:
        self.path = path
        self.rows = rows
        self.checksum = checksum
        """The checksum of the file; None if it could not be read when its store was updated."""
        self.derived: dict[str, object] = {}
        """Name → what was derived from this series already. It is dropped together with the file."""

    def read(self) -> pa.Table | None:
        """Returns the table; None if the file is missing or damaged."""
        return read_table(self.path, self.rows, self.checksum)


class OnDemand:
    """A field of a record: a table, None, or a SeriesFile that is replaced by its table at the first access."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, record: object, owner: type | None = None) -> pa.Table | None:
        if record is None:
            return None  # the class attribute is the default of the field
        held = record.__dict__[self._name]
        if isinstance(held, SeriesFile):
            # The file is kept beside its table, because what was derived from it is needed again.
            record.__dict__[f"{self._name}_file"] = held
            held = record.__dict__[self._name] = held.read()
        return held

    def __set__(self, record: object, value: pa.Table | SeriesFile | None) -> None:
        record.__dict__[self._name] = None if value is self else value


def file_of(record: object, name: str) -> SeriesFile | None:
    """Returns the file of a series of a record; None if the series was never in a file."""
    held = record.__dict__[name]
    return held if isinstance(held, SeriesFile) else record.__dict__.get(f"{name}_file")
