"""What the meter saw of a run's processes as a table, one row per look and process, and back. Pure.

    t_s, process, rss_bytes, cpu_s, read_bytes, written_bytes

A look at which no process was there is a row without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

USED = ("rss_bytes", "cpu_s", "read_bytes", "written_bytes")
SCHEMA = pa.schema([("t_s", pa.float64()), ("process", pa.string()), *((name, pa.float64()) for name in USED)])


def meter_table(looks: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """Looks, each with `t_s` and `processes` (name → what it has used so far), as a table; None: there are none."""
    if not looks:
        return None
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for look in looks:
        processes: Mapping[str | None, Mapping[str, Any]] = look["processes"] or {None: {}}
        for name, used in processes.items():
            columns["t_s"].append(float(look["t_s"]))
            columns["process"].append(name)
            for quantity in USED:
                value = used.get(quantity)
                columns[quantity].append(None if value is None else float(value))
    return pa.table(columns, schema=SCHEMA)


def meter_looks(table: pa.Table | None) -> list[dict[str, Any]]:
    """The looks again, in their order."""
    looks: list[dict[str, Any]] = []
    for row in table.to_pylist() if table is not None else ():
        if not looks or looks[-1]["t_s"] != row["t_s"]:
            looks.append({"t_s": row["t_s"], "processes": {}})
        if row["process"] is not None:
            looks[-1]["processes"][row["process"]] = {name: row[name] for name in USED}
    return looks
