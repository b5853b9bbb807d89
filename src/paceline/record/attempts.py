"""Which of several attempts at the same repeat counts."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.record.record import Record


def last_attempts(records: Iterable[Record]) -> list[Record]:
    """The last attempt of each repeat on each machine, in the order in which they started."""
    latest: dict[tuple[str, str, int], Record] = {}
    for record in records:
        key = (record.trial.id, record.machine["id"], record.repeat)
        if key not in latest or record.attempt > latest[key].attempt:
            latest[key] = record
    return sorted(latest.values(), key=lambda record: record.started)
