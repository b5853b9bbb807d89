"""Decides which runs are done already, and how many repeats a study wants when it is measured again. Pure.

What is recorded is passed in as attempts, which the store reads; so this module does not import `record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.plan.trial import Limits, Trial
from paceline.spec.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """How one attempt at a repeat of a trial ended."""

    trial: str
    """The id of the trial."""
    repeat: int
    number: int
    """The number of the attempt: 0 for the first, more after retries."""
    outcome: str
    """The word for how the run ended, as in its record."""
    ok: bool
    """Whether the run ended well."""
    limits: Limits
    """The limits that the run had."""
    would_fail_again: str | None = None
    """Why further repeats would fail in the same way; None if the run ended well or another repeat may succeed."""
    proof_by: str | None = None
    """The digest of the adapters that a fairness proof ran; None for a measurement."""


def done_runs(attempts: Iterable[Attempt], trials: Sequence[Trial], worker: str) -> dict[tuple[str, int], str]:
    """Returns (trial id, repeat) → outcome of the runs that need not be repeated.

    A run that failed under other limits may succeed under the present ones, and a proof of other adapters does not
    prove the present ones.

    Args:
        attempts: the last attempt at each repeat.
        trials: the trials as they are asked for now, including those of the fairness proof.
        worker: the digest of the present adapters.
    """
    limits = {trial.id: trial.limits for trial in trials}
    return {
        (attempt.trial, attempt.repeat): attempt.outcome
        for attempt in attempts
        if (attempt.ok or attempt.limits == limits.get(attempt.trial)) and attempt.proof_by in {None, worker}
    }


def hopeless_trials(attempts: Iterable[Attempt], done: Mapping[tuple[str, int], str]) -> dict[str, str]:
    """Returns trial id → why its further repeats would fail as a recorded one did.

    Args:
        attempts: the last attempt at each repeat.
        done: the result of `done_runs`; attempts that are not in it give no reason.
    """
    return {
        attempt.trial: attempt.would_fail_again
        for attempt in attempts
        if attempt.would_fail_again and (attempt.trial, attempt.repeat) in done
    }


def next_attempts(attempts: Iterable[Attempt]) -> dict[tuple[str, int], int]:
    """Returns (trial id, repeat) → the number of the next attempt at it."""
    return {(attempt.trial, attempt.repeat): attempt.number + 1 for attempt in attempts}


def repeats_again(study: Study, trials: Iterable[Trial], attempts: Iterable[Attempt]) -> dict[str, int]:
    """Returns trial id → the total number of repeats when those of the study are added to the recorded ones."""
    recorded: dict[str, int] = {}
    for attempt in attempts:
        recorded[attempt.trial] = max(recorded.get(attempt.trial, 0), attempt.repeat + 1)
    return {trial.id: recorded.get(trial.id, 0) + study.repeats_of(trial.workload.model).minimum for trial in trials}
