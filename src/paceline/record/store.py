"""The store: append-only facts in SQLite, series of raw numbers in Parquet beside them.

A run is written in this order: its series under a temporary name, on the disk; then, under SQLite's write
lock, the file gets its name and the row is committed. The row is the truth: a file without one is an
orphan that the next write of that run replaces or `sweep` removes, so after any kill a run is recorded
once or not at all. Two writers of one store wait for each other; the second to record the same run is
refused, and its files touch nothing.

Every series has its checksum in the table `series`, and a file that is not what was written never gives numbers: the
run then has no such series, and a doubt that says so. Of samples the store keeps what they sum up to (`summaries`), so
that records come with their numbers and without being decoded; the samples themselves are read at the first look.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa

from paceline.errors import StoreError
from paceline.plan.trial import Limits, Trial
from paceline.record import sample_files, summaries
from paceline.record.attempt import Attempt
from paceline.record.damage import unusable_series
from paceline.record.database import explained, is_store, not_writable, open_database
from paceline.record.on_demand import SeriesFile, file_of
from paceline.record.record import Doubt, OutcomeKind, Record
from paceline.record.sample_files import NO_NUMBERS_REST_ON, SAMPLES, SERIES, WHOLE, stem_of
from paceline.record.stored_json import dump, without_collecting
from paceline.record.summary import SUMMARY, sum_up, summarize

RECENT_RUNS = 5
"""Runs behind an estimate: enough for a median, few enough to follow a machine that changed."""


RUN, ARCHIVE = "run", "archive"
"""Where a record came from: it was run into this store, or unpacked from an archive."""


class _Written(NamedTuple):
    """A series on the disk that has no name yet."""

    name: str
    temporary: Path
    rows: int
    checksum: str


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
        self.add_all([record])

    def add_all(self, records: Iterable[Record], *, origin: str = RUN) -> None:
        """Record several runs at once, all of them or none.

        Args:
            records: in the order in which they are to be recorded.
            origin: where they come from, RUN or ARCHIVE.

        Raises:
            StoreError: one of them is recorded already, or cannot be written; none is recorded.
        """
        if not self._writable:
            raise not_writable(self.folder)
        batch: list[tuple[Record, list[_Written]]] = []
        with explained(self.folder):
            try:
                for place, record in enumerate(records):
                    written: list[_Written] = []
                    batch.append((record, written))
                    for name in SERIES:
                        if (table := getattr(record, name)) is not None:
                            marked = table.replace_schema_metadata({"run_id": record.run_id})
                            near = self.folder / name / f"{stem_of(record.run_id)}~{place}.parquet"
                            temporary, checksum = sample_files.write_temporary(near, marked)
                            written.append(_Written(name, temporary, table.num_rows, checksum))
                with self._transaction():
                    for record, written in batch:
                        self._insert(record, written, origin)
                    for name in {series.name for _, written in batch for series in written}:
                        sample_files.keep_entries(self.folder / name)
            finally:
                for _, written in batch:
                    for series in written:
                        series.temporary.unlink(missing_ok=True)

    def records(
        self,
        trial_ids: Collection[str] | None = None,
        study: str | None = None,
        machine: str | None = None,
        *,
        with_samples: bool = True,
    ) -> list[Record]:
        """Recorded runs in the order in which they started; None means all.

        Samples are read at the first look at them, but their checksums are verified here: a run whose samples are gone
        or are not what was written comes without them and with the doubt "samples-missing" or "samples-damaged".

        Args:
            with_samples: False for the facts alone: no file is touched.

        Raises:
            StoreError: the facts cannot be read.
        """
        with without_collecting():
            return self._records(*_filter(trial_ids, study=study, machine_id=machine), with_samples=with_samples)

    def _records(self, wanted: str, values: list[Any], *, with_samples: bool) -> list[Record]:
        trials = self._trials(wanted, values)
        files = self._files(wanted, values) if with_samples else {}
        statement = f"SELECT id, trial_id, limits, json FROM runs{wanted} ORDER BY started, id"  # noqa: S608 - values are bound
        runs, records = [], []
        with explained(self.folder):
            # One after the other: the texts of all of them would take as much memory as the records.
            for run, trial_id, limits, facts in self._connection.execute(statement, values):
                series, doubts = files.get(run, ({}, ()))
                trial = trials(trial_id, limits)
                runs.append(run)
                records.append(Record.from_json(json.loads(facts), trial=trial, doubts=doubts, series=series))
        if with_samples:
            self._sum_up(runs, records, wanted, values)
        return records

    def attempted(self, machine_id: str) -> list[Attempt]:
        """Every attempt on this machine in the order in which they started; no facts are decoded for it."""
        rows = self._select(
            "SELECT trial_id, repeat, attempt, outcome, kind, limits, worker FROM runs"
            " WHERE machine_id = ? ORDER BY started, id",
            (machine_id,),
        )
        limits = {text: Limits(**json.loads(text)) for text in {row[5] for row in rows}}
        return [
            Attempt(
                trial_id=trial_id,
                repeat=repeat,
                attempt=attempt,
                outcome=OutcomeKind(outcome),
                kind=kind,
                limits=limits[limit],
                worker=worker,
            )
            for trial_id, repeat, attempt, outcome, kind, limit, worker in rows
        ]

    def recent_elapsed(self, trial_ids: Collection[str], machine: str | None = None) -> dict[str, float]:
        """Trial id → median wall time of its last runs that ended well, for estimates."""
        wanted, values = _filter(trial_ids, machine_id=machine, outcome=OutcomeKind.OK.value)
        elapsed: dict[str, list[float]] = {}
        statement = f"SELECT trial_id, elapsed_s FROM runs{wanted} ORDER BY started"  # noqa: S608 - as above
        for trial_id, seconds in self._select(statement, values):
            elapsed.setdefault(trial_id, []).append(seconds)
        return {trial_id: statistics.median(runs[-RECENT_RUNS:]) for trial_id, runs in elapsed.items()}

    def trials(self, study: str | None = None) -> dict[str, Trial]:
        """Trial id → trial, of all that have a run, or one for a study; the limits are those of one of its runs."""
        wanted, values = _filter(None, study=study)
        statement = f"SELECT trial_id, MAX(limits) FROM runs{wanted} GROUP BY trial_id"  # noqa: S608 - as above
        trial = self._trials(wanted, values)
        return {trial_id: trial(trial_id, limits) for trial_id, limits in self._select(statement, values)}

    def studies(self) -> list[str]:
        """Names of studies with at least one run."""
        return [name for (name,) in self._select("SELECT DISTINCT study FROM runs ORDER BY study")]

    def query(self, sql: str) -> pa.Table:
        """Answer SQL (DuckDB's) over the views `runs`, `samples`, `layers`, `meter` and `output`.

        Raises:
            StoreError: the statement is wrong, the facts cannot be read, or DuckDB is not installed.
        """
        rows = self._select(
            "SELECT id, run_id, machine_id, runs.json, trials.json, limits, stem"
            " FROM runs JOIN trials USING (trial_id) ORDER BY started, id"
        )
        facts = [
            (run_id, machine_id, json.loads(run), json.loads(trial) | {"limits": json.loads(limits)}, stem)
            for _, run_id, machine_id, run, trial, limits, stem in rows
        ]
        stems = {row[0]: row[6] for row in rows}
        files: dict[str, list[str]] = {name: [] for name in SERIES}
        # A file that is damaged is left out rather than failing the question, or answering it wrongly.
        for run, name, count, checksum in self._select("SELECT run, name, rows, checksum FROM series"):
            if sample_files.state_of(self._path(name, stems[run]), count, checksum) == WHOLE:
                files[name].append(stems[run])
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
            for name in SERIES:
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

    def _insert(self, record: Record, written: list[_Written], origin: str) -> None:
        stem = stem_of(record.run_id)
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
        for series in written:
            series.temporary.replace(self._path(series.name, stem))
        facts = record.to_json()
        trial = facts.pop("trial")
        self._connection.execute("INSERT OR IGNORE INTO trials VALUES (?, ?)", (record.trial.id, dump(trial)))
        row = self._connection.execute(
            "INSERT INTO runs (run_id, trial_id, machine_id, repeat, attempt, study, started, elapsed_s, outcome, kind,"
            " limits, worker, origin, stem, json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                record.run_id,
                *key,
                record.study,
                record.started,
                record.elapsed_s,
                record.outcome.kind.value,
                record.kind,
                # Limits are no part of a trial's identity, so each run keeps its own.
                dump(trial["limits"]),
                record.input_facts.worker,
                origin,
                stem,
                dump(facts),
            ),
        ).lastrowid
        assert row is not None
        self._connection.executemany(
            "INSERT INTO series (run, name, rows, checksum) VALUES (?, ?, ?, ?)",
            [(row, series.name, series.rows, series.checksum) for series in written],
        )
        sums = [(row, series.checksum, sum_up(record)) for series in written if series.name == SAMPLES]
        summaries.keep(self._connection, sums)

    def _trials(self, wanted: str, values: list[Any]) -> Callable[[str, str], Trial]:
        """From the id of a trial and the limits of a run of it, as stored, to the trial: each is made once."""
        stored = dict(
            self._select(
                f"SELECT trial_id, json FROM trials WHERE trial_id IN (SELECT trial_id FROM runs{wanted})",  # noqa: S608
                values,
            )
        )

        @cache
        def trial(trial_id: str, limits: str) -> Trial:
            return Trial.from_json(json.loads(stored[trial_id]) | {"limits": json.loads(limits)})

        return trial

    def _files(self, wanted: str, values: list[Any]) -> dict[int, tuple[dict[str, SeriesFile], tuple[Doubt, ...]]]:
        """Row of a run → the files of its series that can be relied on, and doubts about the others."""
        statement = (
            "SELECT run, stem, name, rows, checksum FROM series JOIN runs ON runs.id = run"  # noqa: S608 - as above
            f" WHERE run IN (SELECT id FROM runs{wanted})"
        )
        files: dict[int, tuple[dict[str, SeriesFile], tuple[Doubt, ...]]] = {}
        for run, stem, name, count, checksum in self._select(statement, values):
            path = self._path(name, stem)
            series, doubts = files.setdefault(run, ({}, ()))
            state = WHOLE if name in NO_NUMBERS_REST_ON else sample_files.state_of(path, count, checksum)
            if state == WHOLE:
                series[name] = SeriesFile(path, count, checksum)
            else:
                files[run] = (series, (*doubts, unusable_series(name, path, state)))
        return files

    def _sum_up(self, runs: Sequence[int], records: Sequence[Record], wanted: str, values: list[Any]) -> None:
        """Give every run what its samples sum up to; what is not kept yet is derived, and kept where that can be."""
        with explained(self.folder):
            kept = summaries.kept_summaries(self._connection, wanted, values)
        derived = []
        for run, record in zip(runs, records, strict=True):
            file = file_of(record, SAMPLES)
            if file is None or file.checksum is None:
                continue
            checksum, summary = kept.get(run, ("", None))
            if checksum == file.checksum:
                file.derived[SUMMARY] = summary
            else:
                derived.append((run, file.checksum, summarize(record)))
        if derived and self._writable:
            # Nothing is lost where it cannot be written: it is derived again next time.
            with suppress(sqlite3.Error), self._transaction():
                summaries.keep(self._connection, derived)

    def _path(self, name: str, stem: str) -> str:
        return f"{self.folder}/{name}/{stem}.parquet"

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
