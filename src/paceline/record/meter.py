"""Converts what the meter saw of the processes of a run to a table, with one row per look and process, and back. Pure.

    t_s, process, rss_bytes, cpu_s, read_bytes, written_bytes

A look that found no process is a row whose process is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import pyarrow as pa

USED = ("rss_bytes", "cpu_s", "read_bytes", "written_bytes")
SCHEMA = pa.schema([("t_s", pa.float64()), ("process", pa.string()), *((name, pa.float64()) for name in USED)])

Used = Mapping[str, float | None]
"""Each of USED → how much a process has used so far; None if the system does not report it."""


class Look(TypedDict):
    """What the meter saw of all processes at one moment."""

    t_s: float
    """The seconds since the meter began."""
    processes: dict[str, Used]
    """Name of a process → what it has used so far."""


def meter_table(looks: Sequence[Look]) -> pa.Table | None:
    """Returns the looks as a table; None if there are none."""
    if not looks:
        return None
    columns: dict[str, list[float | str | None]] = {name: [] for name in SCHEMA.names}
    for look in looks:
        rows: list[tuple[str | None, Used]] = [*look["processes"].items()]
        for name, used in rows or [(None, {})]:
            columns["t_s"].append(float(look["t_s"]))
            columns["process"].append(name)
            for quantity in USED:
                value = used.get(quantity)
                columns[quantity].append(None if value is None else float(value))
    return pa.table(columns, schema=SCHEMA)


def meter_looks(table: pa.Table | None) -> list[Look]:
    """Returns the looks that a table was made from, in their order."""
    looks: list[Look] = []
    for row in table.to_pylist() if table is not None else ():
        if not looks or looks[-1]["t_s"] != row["t_s"]:
            looks.append({"t_s": row["t_s"], "processes": {}})
        if row["process"] is not None:
            looks[-1]["processes"][row["process"]] = {name: row[name] for name in USED}
    return looks
