"""Answers SQL over recorded runs with DuckDB: facts as an Arrow table, samples directly from their Parquet files.

DuckDB runs in memory and opens the Parquet files read-only, so it locks nothing and does not disturb a measurement. The
store decides which files are intact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
"""The columns of a view without files, so that a query of an empty store has an empty result."""


class StoredRun(NamedTuple):
    """One run as the store has it."""

    run_id: str
    machine_id: str
    facts: Mapping[str, Any]
    """The facts of the run, decoded from JSON."""
    trial: Mapping[str, Any]
    """Its trial, decoded from JSON."""
    stem: str
    """The name of its files without their ending."""


def run_query(sql: str, folder: Path, runs: Sequence[StoredRun], files: Mapping[str, Sequence[str]]) -> pa.Table:
    """Returns the answer to one statement.

    Args:
        sql: one statement in DuckDB's SQL that has a result.
        folder: the folder of the store, which contains the folders of the series.
        runs: all runs, in order.
        files: name of a series → stems of the runs that have such a file.

    Raises:
        StoreError: DuckDB does not understand the statement, or it has no result.
    """
    # The setting prevents a query from loading extensions over the network.
    with duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"}) as connection:
        connection.register("runs", _runs(runs))
        owners = {run.stem: (run.run_id, run.machine_id) for run in runs}
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


def _runs(runs: Sequence[StoredRun]) -> pa.Table:
    rows = []
    for run in runs:
        trial, facts = Trial.from_json(run.trial), run.facts
        rows.append(
            {
                "run_id": run.run_id,
                "trial_id": trial.id,
                "machine_id": run.machine_id,
                "study": facts["study"],
                "repeat": facts["repeat"],
                "attempt": facts["attempt"],
                "started": facts["started"],
                "elapsed_s": facts["elapsed_s"],
                "outcome": facts["outcome"]["kind"],
                **trial_columns(trial),
                "warnings": [doubt["code"] for doubt in facts["doubts"]],
                "trial_json": json.dumps(run.trial),
                "run_json": json.dumps(facts),
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
    # A view cannot take bound values; the names are constants of ours and the paths are quoted.
    connection.execute(
        f"CREATE VIEW {name} AS SELECT f.run_id, f.machine_id, s.* EXCLUDE (filename)"  # noqa: S608
        f" FROM read_parquet([{paths}], union_by_name = true, filename = true, hive_partitioning = false) s"
        f" JOIN _{name}_files f ON f.path = s.filename"
    )
