"""What the samples of runs sum up to, kept beside the facts so that large stores are not decoded again and again.

A kept summary counts only with the checksum of the samples it was made from and the version of the code that made it;
it can be lost or thrown away at any time. Knows the table `summaries` and nothing else of the store.
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
"""Of what `sum_up` derives. Raise it whenever a number of a summary changes its meaning, its rounding or its name."""

Kept = tuple[str, RunSummary | None]
"""Checksum of the samples, and what they sum up to (None: no step was measured)."""


def kept_summaries(connection: sqlite3.Connection, wanted: str, values: Sequence[str]) -> dict[int, Kept]:
    """Row of a run → what is kept of it by this version; `wanted` chooses runs as in `Store.records`."""
    rows = connection.execute(
        f"SELECT run, checksum, json FROM summaries WHERE version = ? AND run IN (SELECT id FROM runs{wanted})",  # noqa: S608 - our own words; values are bound
        (VERSION, *values),
    )
    return {run: (checksum, from_json(json.loads(text))) for run, checksum, text in rows}


def keep(connection: sqlite3.Connection, summaries: Iterable[tuple[int, str, RunSummary | None]]) -> None:
    """Keep what was derived, instead of what was kept before; inside the caller's transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO summaries (run, checksum, version, json) VALUES (?, ?, ?, ?)",
        [(run, checksum, VERSION, json.dumps(to_json(summary))) for run, checksum, summary in summaries],
    )


def to_json(summary: RunSummary | None) -> dict[str, object] | None:
    """Every field; numbers come back bit by bit, NaN and infinity included."""
    return None if summary is None else asdict(summary)


def from_json(data: Mapping[str, Any] | None) -> RunSummary | None:
    """What `to_json` told of."""
    if data is None:
        return None
    plain = dict(data)
    for name in ("phases", "phases_derived"):
        plain[name] = {phase: PhaseTime(**told) for phase, told in plain[name].items()}
    if plain["lockstep"] is not None:
        together = dict(plain["lockstep"])
        for name in ("passes", "others"):
            told = together[name]
            together[name] = None if told is None else RankTimes(**{**told, "means_s": tuple(told["means_s"])})
        plain["lockstep"] = Lockstep(**together)
    return RunSummary(**plain)
