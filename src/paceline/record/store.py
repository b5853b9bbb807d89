"""The store: append-only facts in SQLite, with series of raw numbers in Parquet files beside them.

A run is written in this order: first its series under temporary names, flushed to the disk; then, under the write lock
of SQLite, the files get their names and the row is committed. The row is the truth: a file without a row is an orphan,
which the next write of that run replaces or `sweep` removes. So after a kill at any moment a run is recorded once or
not at all. Two writers of one store wait for each other; the second that records the same run is refused, and its files
replace nothing.

Every series has its checksum in the table `series`, and a damaged file never gives numbers: the run then has no such
series, and a doubt that says so. The store keeps a summary of the samples of each run (`summaries`), so that records
have their numbers without decoding samples; the samples themselves are read at the first access.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa

from paceline.errors import StoreError
from paceline.plan.resume import Attempt
from paceline.plan.trial import Trial
from paceline.record import sample_files, summaries
from paceline.record.attempt import AttemptRow
from paceline.record.damage import unusable_series
from paceline.record.database import explained, is_store, not_writable, open_database
from paceline.record.on_demand import SeriesFile, file_of
from paceline.record.record import Doubt, OutcomeKind, Record
from paceline.record.sample_files import SAMPLES, SERIES, VERIFIED_WHEN_READ, WHOLE, stem_of
from paceline.record.stored_json import dump, without_collecting
from paceline.record.summary import SUMMARY, sum_up, summarize

RECENT_RUNS = 5
"""The runs behind an estimate: enough for a median, and few enough to follow a machine that changed."""

RUN, ARCHIVE = "run", "archive"
"""The origin of a record: it was run into this store, or unpacked from an archive."""


class _Written(NamedTuple):
    """A series in a temporary file."""

    name: str
    temporary: Path
    rows: int
    checksum: str


class Store:
    """The records of one folder. Open it with `Store.open`, and close it with `close` or `with`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, *, writable: bool) -> None:
        self.folder = folder
        self._connection = connection
        self._writable = writable

    @staticmethod
    def exists(folder: Path | str) -> bool:
        """Whether the folder contains a store. One whose creation was interrupted counts; `open` completes it."""
        with explained(Path(folder)):
            return is_store(Path(folder))

    @classmethod
    def open(cls, folder: Path | str, *, create: bool = False) -> Store:
        """Opens a store and updates it to the current schema.

        Args:
            folder: the folder of the store.
            create: create the store if it does not exist.

        Raises:
            StoreError: there is no store, or it cannot be read or written, is damaged, too new or too old.
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
        """Records a run durably: after the return it survives a power failure.

        Raises:
            StoreError: the run is recorded already, or cannot be written; nothing is changed.
        """
        self.add_all([record])

    def add_all(self, records: Iterable[Record], *, origin: str = RUN) -> None:
        """Records several runs at once, all of them or none.

        Args:
            records: the runs, in the order in which they are to be recorded.
            origin: where they come from, RUN or ARCHIVE.

        Raises:
            StoreError: one of the runs is recorded already, or cannot be written; none is recorded.
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
        """Returns recorded runs in the order in which they started.

        Samples are read at the first access, but their checksums are verified here: a run whose samples are missing or
        damaged has none, and the doubt "samples-missing" or "samples-damaged".

        Args:
            trial_ids: the ids of the trials; None for all.
            study: the name of the study that the runs were made for; None for all.
            machine: the id of the machine; None for all.
            with_samples: whether samples are wanted; if not, no sample file is opened.

        Raises:
            StoreError: the facts cannot be read.
        """
        with without_collecting():
            return self._records(*_filter(trial_ids, study=study, machine_id=machine), with_samples=with_samples)

    def _records(self, wanted: str, values: Sequence[str], *, with_samples: bool) -> list[Record]:
        trials = self._trials(wanted, values)
        files = self._files(wanted, values) if with_samples else {}
        statement = f"SELECT id, trial_id, limits, json FROM runs{wanted} ORDER BY started, id"  # noqa: S608 - values are bound
        runs, records = [], []
        with explained(self.folder):
            # Rows are decoded one by one: all texts together would take as much memory as the records.
            for run, trial_id, limits, facts in self._connection.execute(statement, values):
                series, doubts = files.get(run, ({}, ()))
                trial = trials(trial_id, limits)
                runs.append(run)
                records.append(Record.from_json(json.loads(facts), trial=trial, doubts=doubts, series=series))
        if with_samples:
            self._sum_up(runs, records, wanted, values)
        return records

    def last_attempts(self, machine_id: str) -> list[Attempt]:
        """Returns the last attempt at each repeat on this machine; only the facts of failed runs are decoded."""
        rows = self._select(
            "SELECT trial_id, repeat, attempt, outcome, kind, limits, worker,"
            " CASE outcome WHEN ? THEN NULL ELSE json END FROM runs WHERE machine_id = ? ORDER BY attempt, started, id",
            (OutcomeKind.OK.value, machine_id),
        )
        last = {(row.trial_id, row.repeat): row for row in (AttemptRow(*columns) for columns in rows)}
        return [row.to_attempt() for row in last.values()]

    def recent_elapsed(self, trial_ids: Collection[str], machine: str | None = None) -> dict[str, float]:
        """Returns trial id → the median wall time of its last successful runs, for estimates."""
        wanted, values = _filter(trial_ids, machine_id=machine, outcome=OutcomeKind.OK.value)
        elapsed: dict[str, list[float]] = {}
        statement = f"SELECT trial_id, elapsed_s FROM runs{wanted} ORDER BY started"  # noqa: S608 - as above
        for trial_id, seconds in self._select(statement, values):
            elapsed.setdefault(trial_id, []).append(seconds)
        return {trial_id: statistics.median(runs[-RECENT_RUNS:]) for trial_id, runs in elapsed.items()}

    def trials(self, study: str | None = None) -> dict[str, Trial]:
        """Returns trial id → trial for all with a run, or with a run for the study; the limits are those of one run."""
        wanted, values = _filter(None, study=study)
        statement = f"SELECT trial_id, MAX(limits) FROM runs{wanted} GROUP BY trial_id"  # noqa: S608 - as above
        trial = self._trials(wanted, values)
        return {trial_id: trial(trial_id, limits) for trial_id, limits in self._select(statement, values)}

    def query(self, sql: str) -> pa.Table:
        """Returns the result of a statement in DuckDB's SQL over `runs`, `samples`, `layers`, `meter` and `output`.

        Raises:
            StoreError: the statement is wrong, the facts cannot be read, or DuckDB is not installed.
        """
        rows = self._select(
            "SELECT id, run_id, machine_id, runs.json, trials.json, limits, stem"
            " FROM runs JOIN trials USING (trial_id) ORDER BY started, id"
        )
        stems = {row[0]: row[6] for row in rows}
        files: dict[str, list[str]] = {name: [] for name in SERIES}
        # A damaged file is left out, so that it neither makes the query fail nor its result wrong.
        for run, name, count, checksum in self._select("SELECT run, name, rows, checksum FROM series"):
            if sample_files.state_of(self._path(name, stems[run]), count, checksum) == WHOLE:
                files[name].append(stems[run])
        try:
            from paceline.record.query import StoredRun, run_query  # noqa: PLC0415  DuckDB is an optional dependency
        except ImportError:
            raise StoreError("SQL over a store needs DuckDB", hint="pip install 'paceline[sql]'") from None
        runs = [
            StoredRun(run_id, machine_id, json.loads(facts), json.loads(trial) | {"limits": json.loads(limits)}, stem)
            for _, run_id, machine_id, facts, trial, limits, stem in rows
        ]
        return run_query(sql, self.folder, runs, files)

    def sweep(self) -> list[Path]:
        """Removes what killed writers left: temporary files of dead processes, and Parquet files without a row.

        Returns:
            The removed files.

        Raises:
            StoreError: the facts cannot be read, or the folder cannot be written.
        """
        if not self._writable:
            raise not_writable(self.folder)
        removed = []
        # Files get their names only under the write lock, so while it is held a file without a row is an orphan.
        with explained(self.folder), self._transaction():
            stems = {stem for (stem,) in self._connection.execute("SELECT stem FROM runs")}
            (created,) = self._connection.execute("SELECT value FROM meta WHERE key = 'created'").fetchone()
            for name in SERIES:
                orphans = [
                    path
                    for path in (self.folder / name).glob("*.parquet")
                    # A file older than the store belongs to earlier facts, which may have been moved aside.
                    if path.stem not in stems and path.stat().st_mtime >= float(created)
                ]
                for path in [*orphans, *sample_files.abandoned_temporaries(self.folder / name)]:
                    path.unlink(missing_ok=True)
                    removed.append(path)
        return removed

    def _insert(self, record: Record, written: list[_Written], origin: str) -> None:
        stem = stem_of(record.run_id)
        machine_id = record.machine["id"]
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
        del facts["trial"]
        trial = (record.trial.id, dump(record.trial.to_json()))
        self._connection.execute("INSERT OR IGNORE INTO trials VALUES (?, ?)", trial)
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
                # Limits are not part of the identity of a trial, so each run keeps its own.
                dump(asdict(record.trial.limits)),
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

    def _trials(self, wanted: str, values: Sequence[str]) -> Callable[[str, str], Trial]:
        """Returns a function from a trial id and the limits of a run, as stored, to the trial; each is made once."""
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

    def _files(self, wanted: str, values: Sequence[str]) -> dict[int, tuple[dict[str, SeriesFile], tuple[Doubt, ...]]]:
        """Returns the row id of a run → the intact files of its series, and doubts about the others."""
        statement = (
            "SELECT run, stem, name, rows, checksum FROM series JOIN runs ON runs.id = run"  # noqa: S608 - as above
            f" WHERE run IN (SELECT id FROM runs{wanted})"
        )
        files: dict[int, tuple[dict[str, SeriesFile], tuple[Doubt, ...]]] = {}
        for run, stem, name, count, checksum in self._select(statement, values):
            path = self._path(name, stem)
            series, doubts = files.setdefault(run, ({}, ()))
            state = WHOLE if name in VERIFIED_WHEN_READ else sample_files.state_of(path, count, checksum)
            if state == WHOLE:
                series[name] = SeriesFile(path, count, checksum)
            else:
                files[run] = (series, (*doubts, unusable_series(name, path, state)))
        return files

    def _sum_up(self, runs: Sequence[int], records: Sequence[Record], wanted: str, values: Sequence[str]) -> None:
        """Gives every record the summary of its samples; a missing one is derived, and stored if possible."""
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
            # If the summaries cannot be written now, they are derived again next time.
            with suppress(sqlite3.Error), self._transaction():
                summaries.keep(self._connection, derived)

    def _path(self, name: str, stem: str) -> str:
        return f"{self.folder}/{name}/{stem}.parquet"

    def _select(self, statement: str, values: Sequence[str] = ()) -> list[Any]:
        with explained(self.folder):
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # After some errors, such as a full disk, SQLite has already ended the transaction.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise


def _filter(trial_ids: Collection[str] | None, **columns: str | None) -> tuple[str, list[str]]:
    given = {name: value for name, value in columns.items() if value is not None}
    clauses = [f"{name} = ?" for name in given]
    values = list(given.values())
    if trial_ids is not None:
        # The ids are bound as one JSON value, because SQLite limits the number of bound values.
        clauses.append("trial_id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(trial_ids)))
    return (" WHERE " + " AND ".join(clauses) if clauses else ""), values
