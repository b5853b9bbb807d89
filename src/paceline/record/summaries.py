"""Summaries of samples, stored beside the facts so that the samples of large stores need not be decoded again.

A stored summary is valid only for the checksum of its samples and the version of the code that made it. It may be
deleted at any time. Knows the table `summaries` and nothing else about the store.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from paceline.record.lockstep import Lockstep, RankTimes
from paceline.record.phases import PhaseTime
from paceline.record.summary import RunSummary

VERSION = 1
"""The version of the result of `sum_up`. Raise it when a number of a summary changes its meaning, rounding or name."""

Kept = tuple[str, RunSummary | None]
"""The checksum of the samples, and their summary (None if no step was measured)."""


def kept_summaries(connection: sqlite3.Connection, wanted: str, values: Sequence[str]) -> dict[int, Kept]:
    """Returns the row id of a run → its summary by this version; `wanted` selects runs as in `Store.records`."""
    rows = connection.execute(
        f"SELECT run, checksum, json FROM summaries WHERE version = ? AND run IN (SELECT id FROM runs{wanted})",  # noqa: S608 - our own words; values are bound
        (VERSION, *values),
    )
    return {run: (checksum, from_json(json.loads(text))) for run, checksum, text in rows}


def keep(connection: sqlite3.Connection, summaries: Iterable[tuple[int, str, RunSummary | None]]) -> None:
    """Stores summaries in place of earlier ones, inside the caller's transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO summaries (run, checksum, version, json) VALUES (?, ?, ?, ?)",
        [(run, checksum, VERSION, json.dumps(to_json(summary))) for run, checksum, summary in summaries],
    )


def to_json(summary: RunSummary | None) -> dict[str, object] | None:
    """Returns every field. All numbers survive unchanged, including NaN and infinity."""
    return None if summary is None else asdict(summary)


def from_json(data: Mapping[str, Any] | None) -> RunSummary | None:
    """Returns the summary that `to_json` describes."""
    if data is None:
        return None
    plain = dict(data)
    for name in ("phases", "phases_derived"):
        plain[name] = {phase: PhaseTime(**fields) for phase, fields in plain[name].items()}
    if plain["lockstep"] is not None:
        lockstep = dict(plain["lockstep"])
        for name in ("passes", "others"):
            times = lockstep[name]
            lockstep[name] = None if times is None else RankTimes(**{**times, "means_s": tuple(times["means_s"])})
        plain["lockstep"] = Lockstep(**lockstep)
    return RunSummary(**plain)
