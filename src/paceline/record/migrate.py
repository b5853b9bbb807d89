"""The schema of the facts and its history: one `update_to_N` for each version after the first, applied in
order.

When what is stored changes, raise SCHEMA_VERSION in `record`, write `update_to_N(connection, folder)`, enter
it in UPDATES, and add a golden store `tests/data/record/vN` made by the new code. A step changes rows only
through SQL on the connection; it runs inside one transaction with all others, after a copy of the database was
put beside it. It may add files, which are orphans until that transaction ends, and changes none.

Most of what later versions know more of needs no step: a new fact of a run is a field of `Record` with a default, and
a new series of numbers is a name in `sample_files.SERIES`.
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
"""The first version ever shipped; nothing older was ever promised to be read."""

Step = Callable[[sqlite3.Connection, Path], None]

UPDATES: Mapping[int, Step] = {2: update_to_2}
"""Version → the step that leads to it from the one before."""

TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE trials (trial_id TEXT PRIMARY KEY, json TEXT NOT NULL);
{RUNS}
"""
"""The current schema."""


def create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty store of the current version, inside the caller's transaction."""
    execute_all(connection, TABLES)
    facts = [("schema_version", str(SCHEMA_VERSION)), ("created", repr(time.time()))]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", facts)


def stored_version(connection: sqlite3.Connection) -> int | None:
    """The version of the stored schema; None when there are no tables at all.

    Raises:
        StoreError: it is a database, but not one of ours.
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


def check_version(found: int, where: Path, *, target: int = SCHEMA_VERSION, oldest: int = OLDEST_READ) -> None:
    """Say no, each in its own words, to a store from the future and to one from before memory.

    Raises:
        StoreError: newer than this Paceline, or older than it can update.
    """
    if found > target:
        raise StoreError(
            f"{where}: written by a newer Paceline (store version {found}, this one knows up to {target})",
            hint="upgrade: pip install --upgrade paceline   or use another place: --store DIR",
        )
    if found < oldest:
        raise StoreError(
            f"{where}: too old (store version {found}, this Paceline updates from {oldest} on)",
            hint=f"update it with an earlier Paceline first, or start anew: mv {where} {where}.old",
        )


def migrate(
    connection: sqlite3.Connection,
    folder: Path,
    *,
    target: int = SCHEMA_VERSION,
    updates: Mapping[int, Step] = UPDATES,
) -> None:
    """Bring a store to the target version step by step: all of it or none, with a copy of what it was.

    Raises:
        StoreError: too new or too old.
        sqlite3.Error: a step failed; the store is as before.
    """
    found = stored_version(connection)
    if found is None or found == target:
        return
    check_version(found, folder, target=target)
    copy = folder / f"facts.v{found}.sqlite"
    if not copy.exists():
        connection.execute("VACUUM INTO ?", (str(copy),))
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have updated it between our look and our lock.
        found = stored_version(connection) or target
        for version in range(found + 1, target + 1):
            updates[version](connection, folder)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(target),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
