"""How an attempt at a run ended: all that planning wants to know of it, without its facts."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.plan.trial import Limits
from paceline.record.record import OutcomeKind


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
