"""Records in one small file, to keep beside a page or send to somebody: facts as JSON lines, samples as one table.

A store is made for adding runs; ten times as small, this is made for reading them again. Nothing is lost: the same
records come out, every raw sample with them.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paceline.errors import StoreError
from paceline.record.export import how_to_write
from paceline.record.record import SCHEMA_VERSION, Record
from paceline.record.store import Store

VERSION = 1
ABOUT, FACTS = "about.json", "facts.jsonl"
TABLES = ("samples", "layers")
RUN = "run_id"
LEVEL = 19
"""Of zstd: written seldom, read often."""


def write_archive(records: Sequence[Record], path: Path) -> None:
    """All of these records; a file that is there is replaced when the new one is complete."""
    part = path.with_name(f"{path.name}.part")
    try:
        with zipfile.ZipFile(part, "w") as file:
            file.writestr(ABOUT, json.dumps({"version": VERSION, "schema": SCHEMA_VERSION, "runs": len(records)}))
            lines = "\n".join(json.dumps(_facts(record)) for record in records)
            file.writestr(FACTS, lines, compress_type=zipfile.ZIP_LZMA)
            for name in TABLES:
                table = _joined(records, name)
                if table is not None:
                    buffer = io.BytesIO()
                    pq.write_table(table, buffer, compression="zstd", compression_level=LEVEL)
                    file.writestr(f"{name}.parquet", buffer.getvalue())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}", hint=how_to_write(path)) from None
    finally:
        part.unlink(missing_ok=True)


def read_archive(path: Path) -> list[Record]:
    """What `write_archive` wrote.

    Raises:
        StoreError: it is not there, damaged, or of another version.
    """
    try:
        with zipfile.ZipFile(path) as file:
            about = json.loads(file.read(ABOUT))
            if (about["version"], about["schema"]) != (VERSION, SCHEMA_VERSION):
                raise StoreError(
                    f"{path}: written by another version of Paceline",
                    hint="read it with that version, or ask for a new one",
                )
            tables = {name: _runs_of(file, name) for name in TABLES}
            return [_record(json.loads(line), tables) for line in file.read(FACTS).decode("utf-8").splitlines()]
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, pa.ArrowException) as error:
        raise StoreError(
            f"{path}: no archive of records: {error}", hint="write one: paceline export --format archive"
        ) from None


def unpack_archive(path: Path, folder: Path) -> tuple[int, int]:
    """Its records into a store, which is made if need be: (how many were added, how many were there already).

    Raises:
        StoreError: it is no archive, or the store cannot be written.
    """
    found = read_archive(path)
    with Store.open(folder, create=True) as store:
        known = {_run(record) for record in store.records(with_samples=False)}
        new = [record for record in found if _run(record) not in known]
        for record in new:
            store.add(record)
    return len(new), len(found) - len(new)


def _run(record: Record) -> tuple[str, str, int, int]:
    """By which a store knows a run."""
    return record.trial.id, str(record.machine["id"]), record.repeat, record.attempt


def _facts(record: Record) -> dict[str, Any]:
    """With the columns of its tables: of runs put together, each has those of all."""
    columns = {name: table.column_names for name in TABLES if (table := getattr(record, name)) is not None}
    return {**record.to_json(), "columns": columns}


def _joined(records: Iterable[Record], name: str) -> pa.Table | None:
    found = [(record.run_id, table) for record in records if (table := getattr(record, name)) is not None]
    tables = [table.append_column(RUN, pa.array([run] * table.num_rows, pa.string())) for run, table in found]
    return pa.concat_tables(tables, promote_options="permissive") if tables else None


def _runs_of(file: zipfile.ZipFile, name: str) -> dict[str, pa.Table]:
    """Run id → its rows."""
    if f"{name}.parquet" not in file.namelist():
        return {}
    whole = pq.read_table(io.BytesIO(file.read(f"{name}.parquet")))
    runs = whole[RUN].unique().to_pylist()
    return {run: whole.filter(pc.equal(whole[RUN], run)) for run in runs}


def _record(facts: dict[str, Any], tables: dict[str, dict[str, pa.Table]]) -> Record:
    columns = facts.pop("columns")
    found = {name: tables[name][facts[RUN]].select(columns[name]) for name in TABLES if name in columns}
    return Record.from_json(facts, samples=found.get("samples"), layers=found.get("layers"))
