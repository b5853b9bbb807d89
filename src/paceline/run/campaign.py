"""Going round again: run what is proposed, show the records to the proposer, until it wants nothing more.

The one loop behind adaptive repeats, and later calibration, tuning and trying a recommendation. The proposer lives
right of the record and only computes; the executor is passed in by the caller, who joins the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.plan.schedule import Proposal
from paceline.record import Record

Proposer = Callable[[Sequence[Record]], Proposal | None]
"""From what is recorded to what to run next; None: nothing would tell more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """When to stop asking."""

    seconds: float | None = None
    """Wall time; checked between proposals, so the last one may overrun it. None: no limit."""
    rounds: int = 100
    """Proposals at most: a proposer that never has enough is a defect, not a reason to run for ever."""


def campaign(
    propose: Proposer,
    execute: Callable[[Proposal], Sequence[Record]],
    *,
    records: Sequence[Record] = (),
    budget: Budget | None = None,
) -> list[Record]:
    """All records, those passed in first. Ends when nothing is proposed, nothing new came, or the budget is spent."""
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
