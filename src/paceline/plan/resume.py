"""Which runs are done already, and how many repeats a study wants when it is measured again. Pure.

What is recorded is passed in as plain facts, so this module imports no `record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.plan.trial import Limits, Trial
from paceline.spec.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class LastAttempt:
    """How the last attempt at one repeat of a trial ended, on this machine."""

    trial: str
    """Id of the trial."""
    repeat: int
    outcome: str
    ok: bool
    limits: Limits
    """Those it ran under."""
    would_fail_again: str | None = None
    """Of one that failed: why further repeats would end the same way; None where they may not."""
    proof_by: str | None = None
    """Of a fairness proof: digest of the adapters that were shown; None for a measurement."""


def done_runs(attempts: Iterable[LastAttempt], trials: Sequence[Trial], worker: str) -> dict[tuple[str, int], str]:
    """(trial id, repeat) → outcome of what need not run again.

    A run that other limits ended says nothing about these limits, and a proof of other adapters nothing about today's.

    Args:
        trials: as they are asked for now, proofs included.
        worker: digest of today's adapters.
    """
    limits = {trial.id: trial.limits for trial in trials}
    return {
        (attempt.trial, attempt.repeat): attempt.outcome
        for attempt in attempts
        if (attempt.ok or attempt.limits == limits.get(attempt.trial)) and attempt.proof_by in {None, worker}
    }


def hopeless_trials(attempts: Iterable[LastAttempt], done: Mapping[tuple[str, int], str]) -> dict[str, str]:
    """Trial id → why its further repeats would fail as a recorded one did.

    Args:
        done: as `done_runs` has it: an attempt that does not count says nothing about others.
    """
    return {
        attempt.trial: attempt.would_fail_again
        for attempt in attempts
        if attempt.would_fail_again and (attempt.trial, attempt.repeat) in done
    }


def repeats_again(study: Study, trials: Iterable[Trial], recorded: Mapping[str, int]) -> dict[str, int]:
    """Trial id → repeats in all when the study's own are added to those that are recorded.

    Args:
        recorded: trial id → repeats that are recorded on this machine.
    """
    return {trial.id: recorded.get(trial.id, 0) + study.repeats_of(trial.workload.model).minimum for trial in trials}
