"""Which runs show that frameworks compute the same: the fairness proof, as trials like any other.

Pure, and knows no framework: who is the reference, which also tells what float32 rounding amounts to, is passed in.
What a trial computes does not depend on how many samples, threads or hosts it is measured with, so one proof serves all
trials of a framework's strategy and knobs on a graph, alone or with peers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from paceline.plan.approximation import Approximation
from paceline.plan.trial import FrameworkChoice, Limits, MeasureChoice, Trial

STEPS = 20
"""Steps of a proof: far enough for a wrong momentum, decay or statistic to show."""
BATCH = 8
"""Samples a worker, at most: what is computed is the same as with more, and a proof should be short."""
WORKERS = 2
"""Workers of a proof of an exchange: with two there is a mean to get wrong."""
TIME_LIMIT_S = 3600.0
"""The reference of a large model trains it nine times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofCase:
    """Runs that belong together: one that is judged, and the one it is judged by."""

    subject: Trial
    """Shows what some trials of the study compute."""
    reference: Trial
    """The same in float64, all workers in turn in one process, and what rounding to float32 does to it."""
    approximations: tuple[Approximation, ...] = ()
    """How the subject gives up exactness, with its bounds."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        return (self.reference, self.subject)


def proof_run(trial: Trial, proves_on: str | None = None) -> Trial:
    """The run that shows what this trial computes, on its own site or on this one."""
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
    """One case for each different thing that the trials compute, in their order.

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
    """Every trial of the cases once: what the others are judged by comes first."""
    return list({trial.id: trial for case in cases for trial in case.trials}.values())
