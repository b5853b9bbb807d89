"""SQL over recorded runs, by DuckDB: facts as an Arrow table, samples straight from their Parquet files.

DuckDB lives in memory and opens the Parquet files for reading only, so it locks nothing and a run under
way is not disturbed. Which files can be relied on is the store's to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from paceline.errors import StoreError
from paceline.plan.trial import Trial
from paceline.record import meter, output
from paceline.record.export import table_of, trial_columns
from paceline.record.sample_files import LAYERS, METER, OUTPUT, SAMPLES

_EMPTY = {
    SAMPLES: {
        "rank": pa.int32(),
        "step": pa.int32(),
        "kind": pa.string(),
        "start_s": pa.float64(),
        "wall_s": pa.float64(),
        "cpu_s": pa.float64(),
        "loss": pa.float64(),
    },
    LAYERS: {
        "rank": pa.int32(),
        "layer": pa.string(),
        "what": pa.string(),
        "step": pa.int32(),
        "seconds": pa.float64(),
    },
    METER: {column.name: column.type for column in meter.SCHEMA},
    OUTPUT: {column.name: column.type for column in output.SCHEMA},
}
"""Columns of a view without files, so that a question to an empty store has an empty answer."""

StoredRun = tuple[str, str, Mapping[str, Any], Mapping[str, Any], str]
"""Run id, machine id, the run's facts, its trial, the stem of its files."""


def run_query(sql: str, folder: Path, facts: Sequence[StoredRun], files: Mapping[str, Sequence[str]]) -> pa.Table:
    """Answer one statement.

    Args:
        sql: DuckDB's SQL, one statement that has a result.
        folder: where the folders of the series are.
        facts: one entry per run, in order.
        files: name of a series → stems of the runs that have such a file.

    Raises:
        StoreError: DuckDB does not understand it, or it has no result.
    """
    # The setting keeps a question from reaching for the network.
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as connection:
        connection.register("runs", _runs(facts))
        owners = {stem: (run_id, machine_id) for run_id, machine_id, _, _, stem in facts}
        for name, stems in files.items():
            _make_view(connection, name, {folder / name / f"{stem}.parquet": owners[stem] for stem in stems})
        try:
            relation = connection.sql(sql)
            if relation is None:
                raise StoreError("the statement has no result", hint="ask with SELECT … FROM runs")
            return relation.to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(
                f"the query failed: {error}",
                hint="tables: runs, samples, layers, meter, output; see columns with: DESCRIBE runs",
            ) from error


def _runs(facts: Sequence[StoredRun]) -> pa.Table:
    rows = []
    for run_id, machine_id, run, trial_json, _ in facts:
        trial = Trial.from_json(trial_json)
        rows.append(
            {
                "run_id": run_id,
                "trial_id": trial.id,
                "machine_id": machine_id,
                "study": run["study"],
                "repeat": run["repeat"],
                "attempt": run["attempt"],
                "started": run["started"],
                "elapsed_s": run["elapsed_s"],
                "outcome": run["outcome"]["kind"],
                **trial_columns(trial),
                "warnings": [doubt["code"] for doubt in run["doubts"]],
                "trial_json": json.dumps(trial_json),
                "run_json": json.dumps(run),
            }
        )
    words = ("run_id", "trial_id", "machine_id", "study", "outcome")
    return table_of(rows) if rows else pa.table({word: pa.array([], pa.string()) for word in words})


def _make_view(connection: duckdb.DuckDBPyConnection, name: str, owners: Mapping[Path, tuple[str, str]]) -> None:
    if not owners:
        columns = {"run_id": pa.string(), "machine_id": pa.string(), **_EMPTY[name]}
        connection.register(name, pa.schema(columns).empty_table())
        return
    connection.register(
        f"_{name}_files",
        pa.table(
            {
                "path": [str(path) for path in owners],
                "run_id": [run_id for run_id, _ in owners.values()],
                "machine_id": [machine_id for _, machine_id in owners.values()],
            }
        ),
    )
    paths = ", ".join("'" + str(path).replace("'", "''") + "'" for path in owners)
    # Names are ours and paths are quoted; a view cannot take bound values.
    connection.execute(
        f"CREATE VIEW {name} AS SELECT f.run_id, f.machine_id, s.* EXCLUDE (filename)"  # noqa: S608
        f" FROM read_parquet([{paths}], union_by_name = true, filename = true, hive_partitioning = false) s"
        f" JOIN _{name}_files f ON f.path = s.filename"
    )
