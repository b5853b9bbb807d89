"""The tables of runs in version 2 of the store, in SQL."""

from __future__ import annotations

import sqlite3

RUNS = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    trial_id TEXT NOT NULL REFERENCES trials (trial_id),
    machine_id TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    study TEXT NOT NULL,
    started REAL NOT NULL,
    elapsed_s REAL NOT NULL,
    outcome TEXT NOT NULL,
    kind TEXT NOT NULL,
    limits TEXT NOT NULL,
    worker TEXT,
    origin TEXT,
    stem TEXT NOT NULL UNIQUE,
    json TEXT NOT NULL,
    UNIQUE (trial_id, machine_id, repeat, attempt)
);
CREATE INDEX runs_study ON runs (study);
CREATE TABLE series (
    run INTEGER NOT NULL REFERENCES runs (id),
    name TEXT NOT NULL,
    rows INTEGER NOT NULL,
    checksum TEXT,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE summaries (
    run INTEGER PRIMARY KEY REFERENCES runs (id),
    checksum TEXT NOT NULL,
    version INTEGER NOT NULL,
    json TEXT NOT NULL
);
CREATE TRIGGER runs_never_change BEFORE UPDATE ON runs
BEGIN SELECT RAISE(ABORT, 'facts are never edited'); END;
CREATE TRIGGER runs_never_vanish BEFORE DELETE ON runs
BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
CREATE TRIGGER series_never_change BEFORE UPDATE ON series
BEGIN SELECT RAISE(ABORT, 'facts are never edited'); END;
CREATE TRIGGER series_never_vanish BEFORE DELETE ON series
BEGIN SELECT RAISE(ABORT, 'facts are never deleted'); END;
"""
"""`stem` is the name of the Parquet files of the run, `origin` says where the row came from (NULL: unknown). A checksum
is NULL if the file could not be read when the store was updated. Rows of `summaries` are not facts: they were derived
from the samples with that checksum by that version, and may be replaced."""


def execute_all(connection: sqlite3.Connection, script: str) -> None:
    """Executes every statement of a script inside the caller's transaction, which `executescript` would end."""
    current = ""
    for line in script.strip().splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            connection.execute(current)
            current = ""
