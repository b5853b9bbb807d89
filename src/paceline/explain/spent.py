"""Where the measured step of a trial goes, by cause, on the path of an ordinary worker. Pure.

    input                     its phase, and what ranks wait for others whose batch comes later
    copy, overhead            as their phases; what no phase accounts for is overhead
    straggler wait            the slowest rank's computing in each step − that of an ordinary rank
    exchange                  communication of the rank that waited least: latency and bandwidth together
    contention for cores      what of computing the main thread could have run while no core was free
    compute                   the rest of forward, backward and update

They sum up to the step.
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
"""Latency and bandwidth together: timers cannot tell them apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """Seconds of a step by cause: mean shares over runs, of the mean step that every table shows."""

    seconds: Mapping[str, float]
    """INPUT, COPY, COMPUTE, EXCHANGE, CONTENTION, OVERHEAD, STRAGGLER."""
    spread: Mapping[str, float]
    """Largest − smallest share of each among the runs."""
    by: KnownBy
    """MEASURED, DERIVED where the step is one program, or SIMULATED."""
    slowest: int | None
    """The rank that is slower for good; None: none is."""
    runs: tuple[str, ...]
    """Ids of the runs it rests on."""

    @property
    def step_s(self) -> float:
        return sum(self.seconds.values())

    def share(self, cause: str) -> float:
        return self.seconds[cause] / self.step_s


def mean_step_s(records: Sequence[Record]) -> float:
    """Step time of a trial over its runs, as a comparison has it: the geometric mean, in the cluster's own time."""
    steps = [summary.step_s for record in records if (summary := summarize(record)) is not None]
    return mean_interval(steps).value * records[0].trial.cluster.pace.true_scale


def spent_of(records: Sequence[Record]) -> Spent | None:
    """All good runs of one trial; None where nothing tells the parts of a step."""
    found = [(record, one) for record in records if record.ok and (one := _of_run(record)) is not None]
    if not found:
        return None
    step_s = mean_step_s([record for record, _ in found])
    each = [one for _, (one, _) in found]
    shares = [{cause: value / sum(one.values()) for cause, value in one.items()} for one in each]
    slow = [rank for _, (_, rank) in found]
    return Spent(
        seconds={cause: float(np.mean([one[cause] for one in shares])) * step_s for cause in each[0]},
        spread={cause: float(np.ptp([one[cause] for one in shares])) for cause in each[0]},
        by=weakest(*(_source(record) for record, _ in found)),
        # Slow in most runs, or it was chance.
        slowest=next((rank for rank in set(slow) if rank is not None and slow.count(rank) * 2 > len(slow)), None),
        runs=tuple(record.run_id for record, _ in found),
    )


def _source(record: Record) -> KnownBy:
    if record.trial.framework.simulated:
        return SIMULATED
    summary = summarize(record)
    return DERIVED if summary is not None and FUSED in summary.phases else MEASURED


def _of_run(record: Record) -> tuple[dict[str, float], int | None] | None:
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
    # An ordinary rank waits for a core by as much less than the mean as it computes.
    starved = min(together.starved_s, mean) * (ordinary / mean if mean else 0.0)
    known = {
        INPUT: means.get(DATA, 0.0) + late_input_s(summary),
        COPY: means.get(COPY, 0.0),
        COMPUTE: ordinary - starved + means.get("update", 0.0),
        EXCHANGE: exchange,
        CONTENTION: starved,
        STRAGGLER: waiting,
    }
    return {**known, OVERHEAD: max(0.0, together.step_s - sum(known.values()))}, slow


def _of_fused(summary: RunSummary) -> tuple[dict[str, float], int | None] | None:
    """Parts of a step that is one program, as far as they were derived."""
    parts = {name: max(0.0, phase.seconds) for name, phase in summary.phases_derived.items()}
    if not parts:
        return None
    measured = {name: phase.seconds for name, phase in summary.phases.items() if name != FUSED}
    seconds = {**measured, **parts}
    known = {
        INPUT: seconds.get(DATA, 0.0),
        COPY: seconds.get(COPY, 0.0),
        COMPUTE: sum(seconds.get(name, 0.0) for name in (*PASSES, "update")),
        EXCHANGE: seconds.get(COMMUNICATION, 0.0),
        CONTENTION: 0.0,
        STRAGGLER: 0.0,
    }
    # Derived parts may sum up to more than the step: then each gives way by the same part.
    over = max(1.0, sum(known.values()) / summary.step_s)
    known = {cause: value / over for cause, value in known.items()}
    return {**known, OVERHEAD: max(0.0, summary.step_s - sum(known.values()))}, None
