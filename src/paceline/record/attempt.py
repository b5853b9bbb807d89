"""How an attempt at a run ended: all that planning wants to know of it, without its facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paceline.plan.trial import Limits
from paceline.record.record import OutcomeKind, Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One attempt at a repeat of a trial."""

    trial_id: str
    repeat: int
    attempt: int
    outcome: OutcomeKind
    kind: str
    """As `Record.kind`."""
    limits: Limits
    worker: str | None
    """Digest of the worker's source, where the run came that far."""


def last_attempts(records: Iterable[Record]) -> list[Record]:
    """The last attempt of each repeat on each machine, in the order in which they started."""
    latest: dict[tuple[str, str, int], Record] = {}
    for record in records:
        key = (record.trial.id, record.machine["id"], record.repeat)
        if key not in latest or record.attempt > latest[key].attempt:
            latest[key] = record
    return sorted(latest.values(), key=lambda record: record.started)
