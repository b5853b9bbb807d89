"""The runs of one row: all records of one trial on one machine in one environment, including failed ones.

Records of different machines or environments are never pooled: one trial on two machines gives two groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.plan.trial import Trial
from paceline.record.record import Record
from paceline.record.summary import RunSummary, summarize
from paceline.stats.known_by import DERIVED, MEASURED, SIMULATED, KnownBy, weakest


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """The records of one trial that may be averaged."""

    trial: Trial
    machine: str | None
    """The id of the machine; None if nothing was run."""
    fingerprint: str | None
    """The digest of the environment as it was seen; None if no run came that far."""
    measured: tuple[tuple[Record, RunSummary], ...]
    """The successful runs with numbers, ordered by repeat."""
    empty: tuple[Record, ...] = ()
    """The successful runs without numbers: no step was measured, or their samples are missing or damaged."""
    failed: tuple[Record, ...]
    """The runs whose last attempt failed."""
    retried: int
    """The number of earlier attempts that failed before the same repeat was tried again."""

    @property
    def measured_by(self) -> KnownBy:
        """How the times of the runs are known."""
        return SIMULATED if self.trial.framework.simulated else MEASURED

    @property
    def derived_by(self) -> KnownBy:
        """How ratios of these times are known."""
        return weakest(self.measured_by, DERIVED)

    def by_round(self, name: str) -> dict[int, float]:
        """Returns round → the value of a field of the summary, for the runs that have one."""
        values = {record.repeat: getattr(summary, name) for record, summary in self.measured}
        return {repeat: float(value) for repeat, value in values.items() if value is not None}


def gather(records: Iterable[Record], trials: Sequence[Trial] | None = None) -> list[Runs]:
    """Returns one group per trial, machine and environment, in the order of `trials`, then of first appearance.

    If `trials` are given, records of other trials are left out, and a trial without records is a group without runs.
    """
    records = list(records)
    named = trials if trials is not None else [record.trial for record in records]
    by_trial: dict[str, list[Record]] = {trial.id: [] for trial in named}
    trial_of = {trial.id: trial for trial in named}
    for record in records:
        if (trial_id := record.trial.id) in by_trial:
            by_trial[trial_id].append(record)
    return [group for trial_id, own_records in by_trial.items() for group in _groups(trial_of[trial_id], own_records)]


def fingerprint(record: Record) -> str | None:
    """Returns the digest of the environment as the run saw it: name, lock, interpreter and packages."""
    if not record.environment:
        return None
    recorded = record.environment.get("fingerprint")
    if isinstance(recorded, str):
        return recorded
    return hashlib.sha256(json.dumps(dict(record.environment), sort_keys=True).encode()).hexdigest()[:12]


def _groups(trial: Trial, records: list[Record]) -> list[Runs]:
    if not records:
        return [Runs(trial=trial, machine=None, fingerprint=None, measured=(), failed=(), retried=0)]
    latest: dict[tuple[str, int], Record] = {}
    for record in sorted(records, key=lambda r: (r.attempt, r.started)):
        latest[record.machine["id"], record.repeat] = record
    latest_ids = {id(record) for record in latest.values()}
    # A successful run stays valid; only a failed attempt is replaced by a later one.
    alive = [record for record in records if id(record) in latest_ids or record.ok]
    good: dict[tuple[str, str | None], dict[int, Record]] = {}
    for record in sorted((r for r in alive if r.ok), key=lambda r: (r.attempt, r.started)):
        good.setdefault((record.machine["id"], fingerprint(record)), {})[record.repeat] = record
    # A run can fail before its environment is seen, so failures are counted in the largest group of their machine.
    homes: dict[str, tuple[str, str | None]] = {}
    for key in sorted(good, key=lambda k: -len(good[k])):
        homes.setdefault(key[0], key)
    failed: dict[tuple[str, str | None], list[Record]] = {}
    retried: dict[tuple[str, str | None], int] = {}
    for record in sorted((r for r in records if not r.ok), key=lambda r: r.repeat):
        home = homes.setdefault(record.machine["id"], (record.machine["id"], None))
        if id(record) in latest_ids:
            failed.setdefault(home, []).append(record)
        else:
            retried[home] = retried.get(home, 0) + 1
    groups = []
    for key in dict.fromkeys([*good, *failed]):
        runs = [good[key][repeat] for repeat in sorted(good[key])] if key in good else []
        measured = tuple((run, summary) for run in runs if (summary := summarize(run)) is not None)
        groups.append(
            Runs(
                trial=trial,
                machine=key[0],
                fingerprint=key[1],
                measured=measured,
                empty=tuple(run for run in runs if summarize(run) is None),
                failed=tuple(failed.get(key, ())),
                retried=retried.get(key, 0),
            )
        )
    return groups
