"""The SQLite file of a store: how it is opened, created and updated, and how its errors are explained to a user.

Knows nothing about records. Every error says what happened, whether anything was lost, and what to type next.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paceline.errors import StoreError
from paceline.record import migrate
from paceline.record.record import SCHEMA_VERSION
from paceline.record.sample_files import SAMPLES, SERIES

FACTS = "facts.sqlite"

BUSY_TIMEOUT_S = 30.0
"""A write holds the lock for a few milliseconds, so a longer wait means that another process hangs."""


_FULL = ("full", "disk i/o error")
_DAMAGED = ("malformed", "not a database", "corrupt")


def is_store(folder: Path) -> bool:
    """Whether the folder contains a store. One whose creation was interrupted counts; opening it completes it."""
    return (folder / FACTS).exists() or (folder / SAMPLES).is_dir()


def open_database(folder: Path, *, create: bool) -> tuple[sqlite3.Connection, bool]:
    """Returns a connection to the facts of a store, updated to the current schema, and whether they can be written.

    Raises:
        StoreError: there is no store, or it cannot be read or written, is damaged, too new or too old.
    """
    facts = folder / FACTS
    with explained(folder):
        if not create and not is_store(folder):
            raise _no_store(folder)
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK) and (not facts.exists() or os.access(facts, os.W_OK))
        if writable:
            for name in SERIES:
                (folder / name).mkdir(exist_ok=True)
        elif create or not facts.exists():
            raise not_writable(folder)
        connection = _connect(facts, writable=writable)
        try:
            _prepare(connection, folder, writable=writable)
        except BaseException:
            connection.close()
            raise
    return connection, writable


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turns errors of the system and of SQLite into a StoreError that says what happened and what to type next."""
    try:
        yield
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise not_writable(folder, error) from error
    except OSError as error:
        raise _full(folder, error) from error
    except sqlite3.Error as error:
        message = str(error).lower()
        if any(word in message for word in _DAMAGED):
            raise _damaged(folder, error) from error
        if any(word in message for word in _FULL):
            raise _full(folder, error) from error
        if "locked" in message or "busy" in message:
            raise StoreError(
                f"{folder}: another process has been writing for {BUSY_TIMEOUT_S:.0f} s",
                hint=f"wait for it or see who it is: fuser {folder / FACTS}",
            ) from error
        if "readonly" in message or "unable to open" in message:
            raise not_writable(folder, error) from error
        raise _damaged(folder, error) from error


def _no_store(folder: Path) -> StoreError:
    return StoreError(
        f"{folder}: nothing is recorded here",
        hint="record something: paceline run STUDY   or name another place: --store DIR",
    )


def not_writable(folder: Path, error: BaseException | None = None) -> StoreError:
    reason = f" ({error})" if error else ""
    return StoreError(
        f"{folder}: the store cannot be written{reason}",
        hint="use another place: --store DIR (or PACELINE_STORE)",
    )


def _full(folder: Path, error: BaseException) -> StoreError:
    return StoreError(
        f"{folder}: this run could not be written ({error}); all runs before it are safe",
        hint=f"make room (df -h {folder}) and type the same command again, or use another place: --store DIR",
    )


def _damaged(folder: Path, error: BaseException) -> StoreError:
    return StoreError(
        f"{folder / FACTS}: the store is damaged ({error}); its samples are Parquet files and still readable",
        hint=f"move it aside: mv {folder} {folder}.broken   or use another place: --store DIR",
    )


def _connect(facts: Path, *, writable: bool) -> sqlite3.Connection:
    if writable:
        return sqlite3.connect(facts, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    # SQLite cannot write the index of the log here either. If the log is empty, the file can be read without it.
    log = facts.with_name(facts.name + "-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    return sqlite3.connect(f"{facts.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)


def _prepare(connection: sqlite3.Connection, folder: Path, *, writable: bool) -> None:
    if not writable:
        version = migrate.stored_version(connection)
        if version is None:
            raise _no_store(folder)
        migrate.check_version(version, folder)
        if version < SCHEMA_VERSION:
            raise not_writable(folder)
        return
    version = migrate.stored_version(connection)
    if version is not None:
        # This is checked before anything is changed, so that a store from a later version is left as it is.
        migrate.check_version(version, folder)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if version is None:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have created the tables while this one waited for the lock.
        if migrate.stored_version(connection) is None:
            migrate.create_tables(connection)
        connection.execute("COMMIT")
    migrate.migrate(connection, folder)
