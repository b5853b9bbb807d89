"""Records in one small file, to publish or to send: the facts as JSON lines, and each series as one table.

A store is made for adding runs. An archive is a tenth of its size and is only read. It contains the complete records
with every raw sample. Everything is verified before it is used: the checksum of each part, and that each run is the one
that its id names.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paceline.errors import StoreError
from paceline.record.export import how_to_write
from paceline.record.record import SCHEMA_VERSION, Record
from paceline.record.sample_files import SERIES, checksum_of
from paceline.record.store import ARCHIVE, Store
from paceline.record.update_to_2 import facts_of_2

VERSION = 2
"""The version of the archives that are written. Version 2 added checksums; version 1 is read as well."""
ABOUT, FACTS = "about.json", "facts.jsonl"
RUN = "run_id"
LEVEL = 19
"""The compression level of zstd: high, because an archive is written once and read often."""


def write_archive(records: Sequence[Record], path: Path) -> None:
    """Writes the records to a file. A file that exists is replaced once the new one is complete.

    Raises:
        StoreError: the file cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    lines = "\n".join(json.dumps(_facts(record)) for record in records).encode()
    tables = {f"{name}.parquet": _joined(records, name) for name in SERIES}
    parts = {FACTS: lines, **{name: content for name, content in tables.items() if content is not None}}
    about = {
        "version": VERSION,
        "schema": SCHEMA_VERSION,
        "runs": len(records),
        "checksums": {name: checksum_of(content) for name, content in parts.items()},
    }
    try:
        with zipfile.ZipFile(part, "w") as file:
            file.writestr(ABOUT, json.dumps(about))
            for name, content in parts.items():
                file.writestr(name, content, compress_type=zipfile.ZIP_LZMA if name == FACTS else zipfile.ZIP_STORED)
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}", hint=how_to_write(path)) from None
    finally:
        part.unlink(missing_ok=True)


def read_archive(path: Path) -> list[Record]:
    """Returns the records of an archive that this version or an earlier one wrote.

    Raises:
        StoreError: the file does not exist, is damaged or from a later version, or a run is not what its id says.
    """
    try:
        with zipfile.ZipFile(path) as file:
            about = json.loads(file.read(ABOUT))
            version, schema = about["version"], about["schema"]
            if not (1 <= version <= VERSION and 1 <= schema <= SCHEMA_VERSION):
                raise StoreError(
                    f"{path}: written by another version of Paceline",
                    hint="read it with that version, or ask for a new one",
                )
            parts = {name: file.read(name) for name in file.namelist() if name != ABOUT}
        _verify(path, parts, about)
        tables = {name: _runs_of(parts.get(f"{name}.parquet")) for name in SERIES}
        lines = parts[FACTS].decode("utf-8").splitlines()
        records = [_record(json.loads(line), schema, tables) for line in lines]
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError, pa.ArrowException) as error:
        raise StoreError(
            f"{path}: no archive of records: {error}", hint="write one: paceline export --format archive"
        ) from None
    _verify_runs(path, records)
    return records


def unpack_archive(path: Path, folder: Path) -> tuple[int, int]:
    """Adds the records of an archive to a store, which is created if it does not exist.

    Returns:
        The number of records that were added, and the number of those that the store had already.

    Raises:
        StoreError: the file is not an archive, or the store cannot be written.
    """
    records = read_archive(path)
    with Store.open(folder, create=True) as store:
        stored = {_key(record) for record in store.records(with_samples=False)}
        new = [record for record in records if _key(record) not in stored]
        store.add_all(new, origin=ARCHIVE)
    return len(new), len(records) - len(new)


def _key(record: Record) -> tuple[str, str, int, int]:
    """Returns the values that identify a run in a store."""
    return record.trial.id, record.machine["id"], record.repeat, record.attempt


def _verify(path: Path, parts: Mapping[str, bytes], about: Mapping[str, Any]) -> None:
    """Checks that every part is the one that was written.

    Archives of version 1 have no checksums of their own; for them only the checks of the ZIP format apply.

    Raises:
        StoreError: a part is damaged or missing.
    """
    for name, checksum in about["checksums"].items() if about["version"] > 1 else ():
        if name not in parts or checksum_of(parts[name]) != checksum:
            raise StoreError(
                f"{path}: {name} in it is damaged: its checksum differs; nothing was read", hint="ask for it again"
            )


def _verify_runs(path: Path, records: Sequence[Record]) -> None:
    """Checks that each run is the one that its id names, and that no run occurs twice.

    Raises:
        StoreError: a run has another id, or occurs twice.
    """
    times = Counter(_key(record) for record in records)
    for record in records:
        expected_id = f"{record.trial.id}.r{record.repeat}.a{record.attempt}"
        # The id of an imported profile has a suffix, because the machine that it was measured on is unknown.
        if record.run_id.partition("@")[0] != expected_id or times[_key(record)] > 1:
            raise StoreError(
                f"{path}: the run {record.run_id} in it is not what its id says, or is there twice; nothing was read",
                hint="write it again where its records are: paceline export --format archive",
            )


def _facts(record: Record) -> dict[str, object]:
    """Returns the facts of a record with the columns of its tables: a joined table has the columns of all runs."""
    columns = {name: table.column_names for name in SERIES if (table := getattr(record, name)) is not None}
    return {**record.to_json(), "columns": columns}


def _joined(records: Iterable[Record], name: str) -> bytes | None:
    series = [(record.run_id, table) for record in records if (table := getattr(record, name)) is not None]
    tables = [table.append_column(RUN, pa.array([run] * table.num_rows, pa.string())) for run, table in series]
    if not tables:
        return None
    buffer = io.BytesIO()
    whole = pa.concat_tables(tables, promote_options="permissive")
    pq.write_table(whole, buffer, compression="zstd", compression_level=LEVEL)
    return buffer.getvalue()


def _runs_of(content: bytes | None) -> dict[str, pa.Table]:
    """Returns run id → its rows of a table."""
    if content is None:
        return {}
    whole = pq.read_table(io.BytesIO(content))
    runs = whole[RUN].combine_chunks().dictionary_encode()
    names, places = runs.dictionary.to_pylist(), np.asarray(runs.indices)
    # After a stable sort by run, the rows of each run are one slice in their original order.
    whole = whole.take(np.argsort(places, kind="stable"))
    counts = np.bincount(places, minlength=len(names))
    starts = np.cumsum(counts) - counts
    return {name: whole.slice(start, count) for name, start, count in zip(names, starts, counts, strict=True)}


def _record(facts: dict[str, Any], schema: int, tables: dict[str, dict[str, pa.Table]]) -> Record:
    columns = facts.pop("columns")
    series = {name: tables[name][facts[RUN]].select(columns[name]) for name in SERIES if name in columns}
    if schema == 1:
        facts, meter = facts_of_2(facts, facts["trial"]["cluster"]["site"])
        series |= {"meter": meter} if meter is not None else {}
    return Record.from_json(facts, series=series)
