"""The store: append-only facts in SQLite, raw samples in Parquet beside them. Computes nothing.

A run is written in this order: samples under a temporary name, on the disk; then, under SQLite's write
lock, the file gets its name and the row is committed. The row is the truth: a file without one is an
orphan that the next write of that run replaces or `sweep` removes, so after any kill a run is recorded
once or not at all. Two writers of one store wait for each other; the second to record the same run is
refused, and its samples touch nothing.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from paceline.errors import StoreError
from paceline.plan.trial import Trial
from paceline.record import sample_files
from paceline.record.database import explained, is_store, not_writable, open_database
from paceline.record.doubt_codes import DoubtCode
from paceline.record.record import Doubt, OutcomeKind, Record
from paceline.record.sample_files import LAYERS, SAMPLES, stem_of

RECENT_RUNS = 5
"""Runs behind an estimate: enough for a median, few enough to follow a machine that changed."""


class Store:
    """Facts of runs, in one folder. Open it with `Store.open`, close it with `close` or `with`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, *, writable: bool) -> None:
        self.folder = folder
        self._connection = connection
        self._writable = writable

    @staticmethod
    def exists(folder: Path | str) -> bool:
        """Whether there is a store, be it one whose making was interrupted: `open` then finishes it."""
        with explained(Path(folder)):
            return is_store(Path(folder))

    @classmethod
    def open(cls, folder: Path | str, *, create: bool = False) -> Store:
        """Open a store, updated to the current schema; `create` makes it where there is none.

        Raises:
            StoreError: there is none, it cannot be read or written, is damaged, too new or too old.
        """
        folder = Path(folder)
        connection, writable = open_database(folder, create=create)
        return cls(folder, connection, writable=writable)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Store:  # noqa: PYI034 - typing.Self came with Python 3.11; nobody subclasses it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, record: Record) -> None:
        """Record a run, durably: when this returns it survives a power cut.

        Raises:
            StoreError: this run is recorded already, or cannot be written; nothing is changed.
        """
        if not self._writable:
            raise not_writable(self.folder)
        stem = stem_of(record.run_id)
        written: list[tuple[Path, str]] = []
        with explained(self.folder):
            try:
                for name, table in ((SAMPLES, record.samples), (LAYERS, record.layers)):
                    if table is not None:
                        marked = table.replace_schema_metadata({"run_id": record.run_id})
                        final = self.folder / name / f"{stem}.parquet"
                        written.append((sample_files.write_temporary(final, marked), name))
                with self._transaction():
                    self._insert(record, stem, written)
            finally:
                for temporary, _ in written:
                    temporary.unlink(missing_ok=True)

    def records(
        self,
        trial_ids: Collection[str] | None = None,
        study: str | None = None,
        machine: str | None = None,
        *,
        with_samples: bool = True,
    ) -> list[Record]:
        """Recorded runs in the order in which they started; None means all. Samples are read on demand only.

        A run whose samples are gone or damaged comes without them and with the doubt "samples-missing".

        Raises:
            StoreError: the facts cannot be read.
        """
        wanted, values = _filter(trial_ids, study=study, machine_id=machine)
        statement = (
            "SELECT runs.json, trials.json, stem, sample_rows, layer_rows"  # noqa: S608 - our own words; values are bound
            f" FROM runs JOIN trials USING (trial_id){wanted} ORDER BY started, runs.id"
        )
        return [self._record(*row, with_samples=with_samples) for row in self._select(statement, values)]

    def done(self, machine_id: str) -> dict[tuple[str, int], OutcomeKind]:
        """(trial id, repeat) → how its last attempt on this machine ended."""
        rows = self._select(
            "SELECT trial_id, repeat, outcome FROM runs WHERE machine_id = ? ORDER BY attempt", (machine_id,)
        )
        return {(trial_id, repeat): OutcomeKind(outcome) for trial_id, repeat, outcome in rows}

    def attempts(self, machine_id: str) -> dict[tuple[str, int], int]:
        """(trial id, repeat) → number that its next attempt on this machine gets."""
        rows = self._select(
            "SELECT trial_id, repeat, MAX(attempt) + 1 FROM runs WHERE machine_id = ? GROUP BY trial_id, repeat",
            (machine_id,),
        )
        return {(trial_id, repeat): attempt for trial_id, repeat, attempt in rows}

    def recent_elapsed(self, trial_ids: Collection[str], machine: str | None = None) -> dict[str, float]:
        """Trial id → median wall time of its last runs that ended well, for estimates."""
        wanted, values = _filter(trial_ids, machine_id=machine, outcome=OutcomeKind.OK.value)
        elapsed: dict[str, list[float]] = {}
        statement = f"SELECT trial_id, elapsed_s FROM runs{wanted} ORDER BY started"  # noqa: S608 - as above
        for trial_id, seconds in self._select(statement, values):
            elapsed.setdefault(trial_id, []).append(seconds)
        return {trial_id: statistics.median(runs[-RECENT_RUNS:]) for trial_id, runs in elapsed.items()}

    def trials(self, *, study: str | None = None) -> list[Trial]:
        """Trials with at least one run, in the order of their ids; those of one study, or all."""
        wanted, values = _filter(None, study=study)
        statement = (
            "SELECT DISTINCT trial_id, trials.json FROM runs JOIN trials USING (trial_id)"  # noqa: S608 - as above
            f"{wanted} ORDER BY trial_id"
        )
        return [Trial.from_json(json.loads(trial)) for _, trial in self._select(statement, values)]

    def studies(self) -> list[str]:
        """Names of studies with at least one run."""
        return [name for (name,) in self._select("SELECT DISTINCT study FROM runs ORDER BY study")]

    def query(self, sql: str) -> pa.Table:
        """Answer SQL (DuckDB's) over the views `runs`, `samples` and `layers`.

        Raises:
            StoreError: the statement is wrong, the facts cannot be read, or DuckDB is not installed.
        """
        rows = self._select(
            "SELECT run_id, machine_id, runs.json, trials.json, stem, sample_rows, layer_rows"
            " FROM runs JOIN trials USING (trial_id) ORDER BY started, runs.id"
        )
        facts = [
            (run_id, machine_id, json.loads(run), json.loads(trial), stem)
            for run_id, machine_id, run, trial, stem, _, _ in rows
        ]
        files = {
            name: [row[4] for row in rows if row[column] is not None] for name, column in ((SAMPLES, 5), (LAYERS, 6))
        }
        try:
            from paceline.record.query import run_query  # noqa: PLC0415  DuckDB is only for those who ask
        except ImportError:
            raise StoreError("SQL over a store needs DuckDB", hint="pip install 'paceline[sql]'") from None
        return run_query(sql, self.folder, facts, files)

    def sweep(self) -> list[Path]:
        """Remove what killed writers left: temporary files of dead processes, Parquet files without a row.

        Raises:
            StoreError: the facts cannot be read, or the folder cannot be written.
        """
        if not self._writable:
            raise not_writable(self.folder)
        removed = []
        # Files get their names under the write lock only: while we hold it, one without a row is nobody's.
        with explained(self.folder), self._transaction():
            stems = {stem for (stem,) in self._connection.execute("SELECT stem FROM runs")}
            (created,) = self._connection.execute("SELECT value FROM meta WHERE key = 'created'").fetchone()
            for name in (SAMPLES, LAYERS):
                orphans = [
                    path
                    for path in (self.folder / name).glob("*.parquet")
                    # Older files belong to facts that were here before and may have been moved aside.
                    if path.stem not in stems and path.stat().st_mtime >= float(created)
                ]
                for path in [*orphans, *sample_files.abandoned_temporaries(self.folder / name)]:
                    path.unlink(missing_ok=True)
                    removed.append(path)
        return removed

    def _insert(self, record: Record, stem: str, written: list[tuple[Path, str]]) -> None:
        machine_id = str(record.machine["id"])
        key = (record.trial.id, machine_id, record.repeat, record.attempt)
        recorded = self._connection.execute(
            "SELECT 1 FROM runs WHERE trial_id = ? AND machine_id = ? AND repeat = ? AND attempt = ?", key
        )
        if recorded.fetchone():
            raise StoreError(
                f"{record.run_id} is recorded already on this machine, and facts are never replaced",
                hint="take another attempt at failed runs: paceline run STUDY --retry-failed",
            )
        if self._connection.execute("SELECT 1 FROM runs WHERE stem = ?", (stem,)).fetchone():
            stem = stem_of(f"{record.run_id}@{machine_id}")
        for temporary, name in written:
            sample_files.settle(temporary, self.folder / name / f"{stem}.parquet")
        facts = record.to_json()
        trial = facts.pop("trial")
        # Limits are no part of a trial's identity, so each run keeps its own.
        facts["limits"] = trial["limits"]
        self._connection.execute("INSERT OR IGNORE INTO trials VALUES (?, ?)", (record.trial.id, dump(trial)))
        self._connection.execute(
            "INSERT INTO runs (run_id, trial_id, machine_id, repeat, attempt, study, started, elapsed_s,"
            " outcome, stem, sample_rows, layer_rows, json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                record.run_id,
                *key,
                record.study,
                record.started,
                record.elapsed_s,
                record.outcome.kind.value,
                stem,
                None if record.samples is None else record.samples.num_rows,
                None if record.layers is None else record.layers.num_rows,
                dump(facts),
            ),
        )

    def _record(
        self,
        run: str,
        trial: str,
        stem: str,
        sample_rows: int | None,
        layer_rows: int | None,
        *,
        with_samples: bool,
    ) -> Record:
        facts = json.loads(run)
        facts["trial"] = json.loads(trial) | {"limits": facts.pop("limits")}
        record = Record.from_json(facts)
        if not with_samples:
            return record
        tables: dict[str, pa.Table | None] = {}
        doubts = list(record.doubts)
        for name, rows in ((SAMPLES, sample_rows), (LAYERS, layer_rows)):
            path = self.folder / name / f"{stem}.parquet"
            tables[name] = None if rows is None else sample_files.read_table(path, rows)
            if rows is not None and tables[name] is None:
                doubts.append(_missing(name, path))
        return replace(record, doubts=tuple(doubts), samples=tables[SAMPLES], layers=tables[LAYERS])

    def _select(self, statement: str, values: Collection[Any] = ()) -> list[Any]:
        with explained(self.folder):
            return self._connection.execute(statement, tuple(values)).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite has ended the transaction by itself after some errors, such as a full disk.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise


def _filter(trial_ids: Collection[str] | None, **columns: str | None) -> tuple[str, list[Any]]:
    given = {name: value for name, value in columns.items() if value is not None}
    clauses = [f"{name} = ?" for name in given]
    values: list[Any] = list(given.values())
    if trial_ids is not None:
        # One JSON value instead of a mark each: SQLite limits the number of marks.
        clauses.append("trial_id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(trial_ids)))
    return (" WHERE " + " AND ".join(clauses) if clauses else ""), values


def dump(data: Mapping[str, Any]) -> str:
    """Facts as the store keeps them."""
    return json.dumps(data, default=_plain, sort_keys=True)


def _plain(value: Any) -> Any:
    """What JSON has no word for: NumPy's numbers, and other mappings and sequences than Python's own."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


_MISSING: dict[str, DoubtCode] = {SAMPLES: "samples-missing", LAYERS: "layers-missing"}


def _missing(name: str, path: Path) -> Doubt:
    return Doubt(
        code=_MISSING[name],
        message=f"{path} is missing or damaged, so this run has no {name} to derive numbers from",
        hint="restore the file from a backup, or measure again in another store: --store DIR",
    )
