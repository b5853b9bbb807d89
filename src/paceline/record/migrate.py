"""The schema of the facts and its history: one `update_to_N` for each version after the first, applied in order.

When the stored form changes, raise SCHEMA_VERSION in `record`, write `update_to_N(connection, folder)`, enter it in
UPDATES, and add a golden store `tests/data/record/vN` that the new code made. A step changes rows only through SQL on
the connection. All steps run in one transaction, after a copy of the database was put beside it. A step may add files,
which are orphans until the transaction ends, but must not change any.

Most additions need no step: a new fact of a run is a field of `Record` with a default, and a new series of numbers is a
name in `sample_files.SERIES`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from paceline.errors import StoreError
from paceline.record.record import SCHEMA_VERSION
from paceline.record.schema import RUNS, execute_all
from paceline.record.update_to_2 import update_to_2

OLDEST_READ = 1
"""The first version that was released."""

Step = Callable[[sqlite3.Connection, Path], None]

UPDATES: Mapping[int, Step] = {2: update_to_2}
"""Version → the step that leads to it from the previous version."""

TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE trials (trial_id TEXT PRIMARY KEY, json TEXT NOT NULL);
{RUNS}
"""
"""The current schema."""


def create_tables(connection: sqlite3.Connection) -> None:
    """Creates the tables of an empty store of the current version, inside the caller's transaction."""
    execute_all(connection, TABLES)
    facts = [("schema_version", str(SCHEMA_VERSION)), ("created", repr(time.time()))]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts)


def stored_version(connection: sqlite3.Connection) -> int | None:
    """Returns the version of the stored schema; None if there are no tables.

    Raises:
        StoreError: the database belongs to another program.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    row = None
    if "meta" in tables:
        row = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    if row is None or not row[0].isdigit():
        raise StoreError(
            "facts.sqlite is a database of something else: it has no schema version",
            hint="use another place: --store DIR",
        )
    return int(row[0])


def check_version(version: int, where: Path, *, target: int = SCHEMA_VERSION, oldest: int = OLDEST_READ) -> None:
    """Refuses a store that this version cannot read.

    Raises:
        StoreError: the store is newer than this Paceline, or older than it can update.
    """
    if version > target:
        raise StoreError(
            f"{where}: written by a newer Paceline (store version {version}, this one knows up to {target})",
            hint="upgrade: pip install --upgrade paceline   or use another place: --store DIR",
        )
    if version < oldest:
        raise StoreError(
            f"{where}: too old (store version {version}, this Paceline updates from {oldest} on)",
            hint=f"update it with an earlier Paceline first, or start anew: mv {where} {where}.old",
        )


def migrate(
    connection: sqlite3.Connection,
    folder: Path,
    *,
    target: int = SCHEMA_VERSION,
    updates: Mapping[int, Step] = UPDATES,
) -> None:
    """Updates a store to the target version, completely or not at all, and keeps a copy of the old database.

    Raises:
        StoreError: the store is too new or too old.
        sqlite3.Error: a step failed; the store is as before.
    """
    stored = stored_version(connection)
    if stored is None or stored == target:
        return
    check_version(stored, folder, target=target)
    copy = folder / f"facts.v{stored}.sqlite"
    if not copy.exists():
        connection.execute("VACUUM INTO ?", (str(copy),))
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have updated the store before this one got the lock.
        stored = stored_version(connection) or target
        for version in range(stored + 1, target + 1):
            updates[version](connection, folder)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(target),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
