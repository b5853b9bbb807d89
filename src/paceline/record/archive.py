"""Records in one small file, to keep beside a page or send to somebody: facts as JSON lines, each series as one table.

A store is made for adding runs; ten times as small, this is made for reading them again. Nothing is lost: the same
records come out, every raw sample with them. What is read is verified first, all of it: the checksum of every part, and
that each run is the run that its id says.
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
"""Of the archive: 2 came with checksums, and is written; 1 is read as well."""
ABOUT, FACTS = "about.json", "facts.jsonl"
RUN = "run_id"
LEVEL = 19
"""Of zstd: written seldom, read often."""


def write_archive(records: Sequence[Record], path: Path) -> None:
    """All of these records; a file that is there is replaced when the new one is complete."""
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
    """What `write_archive` wrote, this version's or an earlier one's.

    Raises:
        StoreError: it is not there, damaged, of a later version, or not what it says.
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
    """Its records into a store, which is made if need be: (how many were added, how many were there already).

    Raises:
        StoreError: it is no archive, or the store cannot be written.
    """
    found = read_archive(path)
    with Store.open(folder, create=True) as store:
        known = {_run(record) for record in store.records(with_samples=False)}
        new = [record for record in found if _run(record) not in known]
        store.add_all(new, origin=ARCHIVE)
    return len(new), len(found) - len(new)


def _run(record: Record) -> tuple[str, str, int, int]:
    """By which a store knows a run."""
    return record.trial.id, record.machine["id"], record.repeat, record.attempt


def _verify(path: Path, parts: Mapping[str, bytes], about: Mapping[str, Any]) -> None:
    """Every part is the one that was written; archives of version 1 have nothing but what a ZIP file checks by itself.

    Raises:
        StoreError: one is not, or is missing.
    """
    for name, checksum in about["checksums"].items() if about["version"] > 1 else ():
        if name not in parts or checksum_of(parts[name]) != checksum:
            raise StoreError(
                f"{path}: {name} in it is damaged: its checksum differs; nothing was read", hint="ask for it again"
            )


def _verify_runs(path: Path, records: Sequence[Record]) -> None:
    """Each run is the one that its id says, and is there once.

    Raises:
        StoreError: one is not.
    """
    times = Counter(_run(record) for record in records)
    for record in records:
        said = f"{record.trial.id}.r{record.repeat}.a{record.attempt}"
        # An imported profile has a suffix of its own: nobody knows which machine it was.
        if record.run_id.partition("@")[0] != said or times[_run(record)] > 1:
            raise StoreError(
                f"{path}: the run {record.run_id} in it is not what its id says, or is there twice; nothing was read",
                hint="write it again where its records are: paceline export --format archive",
            )


def _facts(record: Record) -> dict[str, object]:
    """With the columns of its tables: of runs put together, each has those of all."""
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
    """Run id → its rows."""
    if content is None:
        return {}
    whole = pq.read_table(io.BytesIO(content))
    runs = whole[RUN].combine_chunks().dictionary_encode()
    names, places = runs.dictionary.to_pylist(), np.asarray(runs.indices)
    # Rows of a run side by side, in their order: each run is then a slice, however many there are.
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
