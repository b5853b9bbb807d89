"""Series of a run that lie in files: read when somebody first looks at them, and only then.

A record of ten thousand is asked for its facts far more often than for its samples. Knows nothing of the store; how a
file is read and checked is `sample_files`.
"""

from __future__ import annotations

import pyarrow as pa

from paceline.record.sample_files import read_table


class SeriesFile:
    """One series of one recorded run: where it lies, and what it must be."""

    __slots__ = ("checksum", "derived", "path", "rows")

    def __init__(self, path: str, rows: int, checksum: str | None) -> None:
        self.path = path
        self.rows = rows
        self.checksum = checksum
        """Of the file's bytes; None: not known, because the file could not be read when its store was updated."""
        self.derived: dict[str, object] = {}
        """What was derived from this series already, by name; goes with the file, so it can never outlive it."""

    def read(self) -> pa.Table | None:
        """The table; None when the file is gone, or is not what was written."""
        return read_table(self.path, self.rows, self.checksum)


class OnDemand:
    """A field of a record that holds a table, None, or a SeriesFile that becomes its table at the first look."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, record: object, owner: type | None = None) -> pa.Table | None:
        if record is None:
            return None  # the default of the field
        held = record.__dict__[self._name]
        if isinstance(held, SeriesFile):
            # The file stays known beside its table: what was derived from it is asked for again.
            record.__dict__[f"{self._name}_file"] = held
            held = record.__dict__[self._name] = held.read()
        return held

    def __set__(self, record: object, value: pa.Table | SeriesFile | None) -> None:
        record.__dict__[self._name] = None if value is self else value


def file_of(record: object, name: str) -> SeriesFile | None:
    """The file behind a series of a record; None where the series is a table of its own, or there is none."""
    held = record.__dict__[name]
    return held if isinstance(held, SeriesFile) else record.__dict__.get(f"{name}_file")
