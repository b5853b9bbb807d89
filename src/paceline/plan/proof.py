"""The fairness proof: trials that show that frameworks compute the same.

Pure, and independent of frameworks: the caller passes the reference, which also measures the effect of float32
rounding. What a trial computes does not depend on its number of samples, threads or hosts, so one proof covers all
trials of a framework's strategy and knobs on a graph, with one worker or with several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from paceline.plan.approximation import Approximation
from paceline.plan.trial import FrameworkChoice, Limits, MeasureChoice, Trial

STEPS = 20
"""Steps of a proof: enough for a wrong momentum, decay or statistic to become visible."""
BATCH = 8
"""Largest number of samples per worker: more would compute the same, and a proof should be short."""
WORKERS = 2
"""Workers of a proof of an exchange: with two, a wrong mean becomes visible."""
TIME_LIMIT_S = 3600.0
"""Long, because the reference run of a large model trains it nine times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofCase:
    """Two runs that belong together: the subject is compared with the reference."""

    subject: Trial
    """Computes what some trials of the study compute."""
    reference: Trial
    """Computes the same in float64, all workers in turn in one process, and measures the effect of float32 rounding."""
    approximations: tuple[Approximation, ...] = ()
    """How the subject gives up exactness, with its bounds."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        return (self.reference, self.subject)


def proof_run(trial: Trial, proves_on: str | None = None) -> Trial:
    """The proof run of this trial, on the trial's site or on `proves_on`."""
    cluster = trial.cluster if proves_on is None else replace(trial.cluster, site=proves_on, options={})
    return replace(
        trial,
        workload=replace(
            trial.workload,
            batch_per_worker=min(trial.workload.batch_per_worker, BATCH),
            scaling="weak",
            input="resident",
            loader_workers=0,
        ),
        cluster=replace(
            cluster,
            hosts=1,
            workers_per_host=min(trial.workers, WORKERS),
            threads_per_worker=1,
            network=None,
            oversubscribe=False,
        ),
        measure=MeasureChoice(warmup_steps=0, steps=STEPS, layers=False, evidence=True),
        limits=Limits(time_s=max(trial.limits.time_s, TIME_LIMIT_S), memory_bytes=None),
    )


def proof_cases(
    trials: Iterable[Trial],
    *,
    reference: FrameworkChoice,
    proves_on: str | None = None,
    approximations: Callable[[FrameworkChoice], tuple[Approximation, ...]] = lambda _choice: (),
) -> list[ProofCase]:
    """One case for each distinct computation of the trials, in their order.

    Args:
        approximations: how a framework's strategy and knobs give up exactness.
    """
    cases: dict[str, ProofCase] = {}
    for trial in trials:
        subject = proof_run(trial, proves_on)
        if subject.id not in cases:
            cases[subject.id] = ProofCase(
                subject=subject,
                reference=replace(subject, framework=reference),
                approximations=approximations(subject.framework),
            )
    return list(cases.values())


def runs_of(cases: Iterable[ProofCase]) -> list[Trial]:
    """Every trial of the cases once; each reference comes before its subjects."""
    return list({trial.id: trial for case in cases for trial in case.trials}.values())
