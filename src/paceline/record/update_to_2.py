"""The update of stored facts from version 1 to 2: checksums of series, the meter as a series, machines of hosts.

It applies to the rows of a store, and to the facts in an archive, which have the same form.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from paceline.record import sample_files
from paceline.record.machines import machines_of
from paceline.record.meter import meter_table
from paceline.record.sample_files import LAYERS, METER, SAMPLES
from paceline.record.schema import RUNS, execute_all
from paceline.record.stored_json import dump


def update_to_2(connection: sqlite3.Connection, folder: Path) -> None:
    """Rewrites every row in the form of version 2, with the same id. What is removed from a row is moved to a file."""
    for trigger in ("runs_never_change", "runs_never_vanish"):
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("DROP INDEX runs_study")
    connection.execute("ALTER TABLE runs RENAME TO runs_1")
    execute_all(connection, RUNS)
    sites = {
        trial_id: json.loads(trial)["cluster"]["site"]
        for trial_id, trial in connection.execute("SELECT trial_id, json FROM trials")
    }
    same = "id, run_id, trial_id, machine_id, repeat, attempt, study, started, elapsed_s, outcome"
    rows = connection.execute(f"SELECT {same}, stem, sample_rows, layer_rows, json FROM runs_1 ORDER BY id")  # noqa: S608
    for *columns, stem, sample_rows, layer_rows, text in rows.fetchall():
        facts = json.loads(text)
        limits = facts.pop("limits")
        facts, meter = facts_of_2(facts, sites[columns[2]])
        worker = facts["inputs"].get("worker")
        connection.execute(
            f"INSERT INTO runs ({same}, kind, limits, worker, stem, json)"  # noqa: S608
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*columns, facts.get("kind", "measurement"), dump(limits), worker, stem, dump(facts)),
        )
        series = [
            (columns[0], name, count, _checksum(folder / name / f"{stem}.parquet", count))
            for name, count in ((SAMPLES, sample_rows), (LAYERS, layer_rows))
            if count is not None
        ]
        if meter is not None:
            path = folder / METER / f"{stem}.parquet"
            temporary, checksum = sample_files.write_temporary(
                path, meter.replace_schema_metadata({"run_id": facts["run_id"]})
            )
            temporary.replace(path)
            series.append((columns[0], METER, meter.num_rows, checksum))
        connection.executemany("INSERT INTO series (run, name, rows, checksum) VALUES (?, ?, ?, ?)", series)
    sample_files.keep_entries(folder / METER)
    connection.execute("DROP TABLE runs_1")


def facts_of_2(facts: dict[str, Any], site: str) -> tuple[dict[str, Any], pa.Table | None]:
    """Returns the facts of a run in the form of version 2, and what the meter saw as a table."""
    resources = dict(facts["resources"])
    looks = resources.pop("samples", None)
    hosts = [str(host["name"]) for host in facts.get("hosts", ())]
    reported = ((facts.get("state") or {}).get("site") or {}).get("hosts") or ()
    machines = machines_of(hosts, site, facts["machine"], reported)
    changed = {
        "resources": resources,
        "machines": [asdict(machine) for machine in machines],
        "schema_version": 2,
    }
    return {**facts, **changed}, meter_table(looks) if looks else None


def _checksum(path: Path, rows: int) -> str | None:
    """Returns the checksum of a file; None if it is missing or damaged, because it may be restored later."""
    if sample_files.read_table(path, rows, None) is None:
        return None
    return sample_files.checksum_of(path.read_bytes())
