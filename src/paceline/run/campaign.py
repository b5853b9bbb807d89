"""The loop of a campaign: run what is proposed and show the records to the proposer, until it proposes nothing more.

Adaptive repeats, calibration and the trial of a recommendation use it. The proposer belongs to a stage after the record
and only computes; the caller passes in the function that runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.plan.schedule import Proposal
from paceline.record import Record

Proposer = Callable[[Sequence[Record]], Proposal | None]
"""From what is recorded to what to run next; None: no further run would tell more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """When a campaign ends, whatever is proposed."""

    seconds: float | None = None
    """Wall time, checked between proposals, so that the last one may exceed it; None: no limit."""
    rounds: int = 100
    """The most proposals that are run: a proposer that never ends is a defect."""


def campaign(
    propose: Proposer,
    execute: Callable[[Proposal], Sequence[Record]],
    *,
    records: Sequence[Record] = (),
    budget: Budget | None = None,
) -> list[Record]:
    """Run until nothing is proposed, nothing new is recorded, or the budget is spent; all records, old ones first."""
    budget = budget or Budget()
    collected = list(records)
    started = time.monotonic()
    for _ in range(budget.rounds):
        if budget.seconds is not None and time.monotonic() - started >= budget.seconds:
            break
        proposal = propose(collected)
        if proposal is None:
            break
        new = execute(proposal)
        if not new:
            break
        collected += new
    return collected
