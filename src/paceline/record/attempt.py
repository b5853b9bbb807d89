"""The last attempt at each repeat: of records, and of the rows of a store without reading their facts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from paceline.plan.resume import Attempt
from paceline.plan.trial import Limits
from paceline.record.failures import would_fail_again
from paceline.record.record import PROOF, Outcome, OutcomeKind, Record


def last_attempts(records: Iterable[Record]) -> list[Record]:
    """Returns the last attempt at each repeat on each machine, in the order in which they started."""
    latest: dict[tuple[str, str, int], Record] = {}
    for record in records:
        key = (record.trial.id, record.machine["id"], record.repeat)
        if key not in latest or record.attempt > latest[key].attempt:
            latest[key] = record
    return sorted(latest.values(), key=lambda record: record.started)


class AttemptRow(NamedTuple):
    """One run as a row of a store."""

    trial_id: str
    repeat: int
    attempt: int
    outcome: str
    kind: str
    limits: str
    """The limits as JSON."""
    worker: str | None
    """The digest of the adapters; None if the run did not come that far."""
    facts: str | None
    """The facts of the run as JSON; None for a run that ended well, whose facts are not needed."""

    def to_attempt(self) -> Attempt:
        """Returns the attempt that the row describes."""
        reason = None
        if self.facts is not None:
            reason = would_fail_again(Outcome.from_json(json.loads(self.facts)["outcome"]), self.repeat)
        return Attempt(
            trial=self.trial_id,
            repeat=self.repeat,
            number=self.attempt,
            outcome=self.outcome,
            ok=self.outcome == OutcomeKind.OK.value,
            limits=_limits(self.limits),
            would_fail_again=reason,
            proof_by=(self.worker or "") if self.kind == PROOF else None,
        )


@cache
def _limits(text: str) -> Limits:
    """Decodes limits once per text: nearly all runs of a store have the same."""
    return Limits(**json.loads(text))
