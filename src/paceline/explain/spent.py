"""Splits the measured step of a trial by cause, on the critical path of an ordinary worker. Pure.

    input                     the input phase, and the wait for ranks whose batch arrives later
    copy                      the copy phase
    straggler wait            computation of the slowest rank in each step − that of an ordinary rank
    exchange                  exposed communication of the rank that waited least: latency and bandwidth together
    contention for cores      computation during which the main thread was runnable, but no core was free
    compute                   the rest of forward, backward and update
    overhead                  the time that no phase accounts for

The parts sum to the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.explain.finding import COPY
from paceline.model.equations.stragglers import straggling_of
from paceline.model.equations.terms import COMPUTE, CONTENTION, INPUT, OVERHEAD, STRAGGLER
from paceline.model.fitting.observe import late_input_s
from paceline.plan.vocabulary import ASYNCHRONOUS
from paceline.record.lockstep import DATA, PASSES
from paceline.record.phases import COMMUNICATION, FUSED
from paceline.record.record import Record
from paceline.record.summary import RunSummary, summarize
from paceline.stats import mean_interval
from paceline.stats.known_by import DERIVED, MEASURED, SIMULATED, KnownBy, weakest

EXCHANGE = "exchange"
"""Latency and bandwidth together: timers cannot separate them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """The seconds of a step by cause: the mean shares over runs, times the mean step that every table shows."""

    seconds: Mapping[str, float]
    """Cause → seconds per step, of INPUT, COPY, COMPUTE, EXCHANGE, CONTENTION, OVERHEAD and STRAGGLER."""
    spread: Mapping[str, float]
    """Cause → its largest share − its smallest share among the runs."""
    by: KnownBy
    """MEASURED, DERIVED if the step is one fused program, or SIMULATED."""
    slowest: int | None
    """The rank that is consistently slower; None if there is none."""
    runs: tuple[str, ...]
    """The ids of the runs that it rests on."""

    @property
    def step_s(self) -> float:
        return sum(self.seconds.values())

    def share(self, cause: str) -> float:
        return self.seconds[cause] / self.step_s


def mean_step_s(records: Sequence[Record]) -> float:
    """Returns the step time as a comparison shows it: the geometric mean over runs, in the emulated cluster's time."""
    steps = [summary.step_s for record in records if (summary := summarize(record)) is not None]
    return mean_interval(steps, unit="s").value * records[0].trial.cluster.pace.true_scale


def spent_of(records: Sequence[Record]) -> Spent | None:
    """Splits the step over all successful runs of one trial; None if no run tells the parts of a step."""
    splits = [(record, split) for record in records if record.ok and (split := _of_run(record)) is not None]
    if not splits:
        return None
    step_s = mean_step_s([record for record, _ in splits])
    seconds_of_runs = [seconds for _, (seconds, _) in splits]
    shares = [{cause: value / sum(run.values()) for cause, value in run.items()} for run in seconds_of_runs]
    causes = list(seconds_of_runs[0])
    slow = [rank for _, (_, rank) in splits]
    return Spent(
        seconds={cause: float(np.mean([run[cause] for run in shares])) * step_s for cause in causes},
        spread={cause: float(np.ptp([run[cause] for run in shares])) for cause in causes},
        by=weakest(*(_source(record) for record, _ in splits)),
        # A rank that is slow in less than most runs was slow by chance.
        slowest=next((rank for rank in set(slow) if rank is not None and slow.count(rank) * 2 > len(slow)), None),
        runs=tuple(record.run_id for record, _ in splits),
    )


def _source(record: Record) -> KnownBy:
    if record.trial.framework.simulated:
        return SIMULATED
    summary = summarize(record)
    return DERIVED if summary is not None and FUSED in summary.phases else MEASURED


def _of_run(record: Record) -> tuple[dict[str, float], int | None] | None:
    """Returns the seconds by cause and the slow rank of one run; None if nothing tells the parts of its step."""
    summary = summarize(record)
    if summary is None or summary.lockstep is None:
        return None
    together = summary.lockstep
    means, computing = together.phases_s, together.passes
    if FUSED in means:
        return _of_fused(summary)
    if not means:
        return None
    exchange = means.get(COMMUNICATION, 0.0)
    mean = 0.0 if computing is None else computing.mean_s
    ordinary, waiting, slow = mean, 0.0, None
    several = computing is not None and len(computing.means_s) > 1
    if computing is not None and several and record.trial.framework.strategy_class != ASYNCHRONOUS:
        slowest = straggling_of(computing).slowest
        ordinary /= 1 + (slowest - 1) / len(computing.means_s)
        waiting = max(0.0, computing.longest_s - ordinary)
        slow = int(np.argmax(computing.means_s)) if slowest > 1 else None
        if together.exchange_s is not None:
            exchange = together.exchange_s
    # An ordinary rank computes for less time than the mean rank, and waits for a core for proportionally less.
    starved = min(together.starved_s, mean) * (ordinary / mean if mean else 0.0)
    by_cause = {
        INPUT: means.get(DATA, 0.0) + late_input_s(summary),
        COPY: means.get(COPY, 0.0),
        COMPUTE: ordinary - starved + means.get("update", 0.0),
        EXCHANGE: exchange,
        CONTENTION: starved,
        STRAGGLER: waiting,
    }
    return {**by_cause, OVERHEAD: max(0.0, together.step_s - sum(by_cause.values()))}, slow


def _of_fused(summary: RunSummary) -> tuple[dict[str, float], int | None] | None:
    """Returns the derived parts of a step that is one fused program; None if none were derived."""
    parts = {name: max(0.0, phase.seconds) for name, phase in summary.phases_derived.items()}
    if not parts:
        return None
    measured = {name: phase.seconds for name, phase in summary.phases.items() if name != FUSED}
    seconds = {**measured, **parts}
    by_cause = {
        INPUT: seconds.get(DATA, 0.0),
        COPY: seconds.get(COPY, 0.0),
        COMPUTE: sum(seconds.get(name, 0.0) for name in (*PASSES, "update")),
        EXCHANGE: seconds.get(COMMUNICATION, 0.0),
        CONTENTION: 0.0,
        STRAGGLER: 0.0,
    }
    # Derived parts may sum to more than the step: they are then scaled down to it.
    over = max(1.0, sum(by_cause.values()) / summary.step_s)
    by_cause = {cause: value / over for cause, value in by_cause.items()}
    return {**by_cause, OVERHEAD: max(0.0, summary.step_s - sum(by_cause.values()))}, None
