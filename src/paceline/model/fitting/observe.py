"""Observations for the model, one per trial, from records. Pure.

Times from a dilated site, where hosts and links are k times slower by design, are converted back to their true scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.ready import Ready, buckets_of
from paceline.model.equations.stragglers import Straggling, straggling_of
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import REPLICATED, RING, Exchange, Sharing
from paceline.record.lockstep import DATA, PASSES
from paceline.record.phases import COMMUNICATION, FUSED
from paceline.record.program_checks import never_exchanged
from paceline.record.record import MEASUREMENT, Record
from paceline.record.summary import RunSummary, slowest_times, summarize

HANDED_OVER = frozenset({COMMUNICATION, "update"})
"""Phases that cannot be separated if servers apply the optimizer."""
BUCKETED_BY = "DistributedDataParallel"
"""The wrapper that sends gradients in buckets, of known default sizes if it does not report them."""
TAKEN_APART = "timers"
"""Name of the method that derives phases from steps without overlap (record.fact.DERIVED_BY)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """The runs of one trial."""

    trial: Trial
    conditions: Conditions
    steps_s: tuple[float, ...]
    """Mean step time of each run."""
    phases: Mapping[str, float]
    """Seconds per phase, mean over runs; {} if only the whole step was timed."""
    derived: bool
    """Whether phases were derived rather than timed."""
    handed_over_s: float | None = None
    """Seconds of the exchange and the servers' update, timed without overlap; None if not timed."""
    straggling: Straggling | None
    """Straggling of the workers' compute; None if compute was not timed."""
    peak_rss_bytes: float | None
    """Peak resident memory of the largest rank."""

    @property
    def step_s(self) -> float:
        return float(np.mean(self.steps_s))


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedCollective:
    """The runs of one stand-alone collective."""

    trial: Trial
    conditions: Conditions
    operation: str
    sizes: Floats
    seconds: Floats
    """Seconds for each size, mean over runs."""
    runs: int = 1
    noise: float = 0.0
    """Standard deviation of the logarithm of these times between runs, all sizes together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How a trial exchanges gradients and receives input, from the framework's capabilities."""

    exchange: Exchange = RING
    sharing: Sharing = REPLICATED
    every: int = 1
    """Steps from one exchange to the next."""
    unknown: str = ""
    """Why the model does not cover this sharing scheme; "" if it does."""
    servers_per_host: int = 0
    """Servers per host if the exchange goes through servers."""
    tensor_by_tensor: bool = False
    """Whether each gradient is sent as its own message as soon as it is ready."""
    prefetch: bool = False
    """Whether the next batch is fetched during the step."""


def conditions_of(trial: Trial, manner: Manner) -> Conditions:
    """The conditions of a trial, without its messages."""
    network = trial.cluster.network
    return Conditions(
        workers=trial.workers,
        hosts=trial.cluster.hosts,
        batch=float(trial.workload.batch_per_worker),
        bandwidth=network.bandwidth_bytes_per_s if network else None,
        latency_s=network.latency_s if network else None,
        exchange=manner.exchange,
        servers=max(1, manner.servers_per_host * trial.cluster.hosts),
        prefetch=manner.prefetch,
        sharing=manner.sharing,
        every=manner.every,
    )


def trainings(
    records: Iterable[Record], manner: Callable[[Trial], Manner], ready: Callable[[Trial], Ready | None]
) -> list[Training]:
    """One observation per measured trial, in order of appearance."""
    runs: dict[str, list[tuple[Record, RunSummary]]] = {}
    for record in records:
        # Hooks on every layer slow the step down. Such a run shows when gradients are ready, not how long a step takes.
        measures = record.kind == MEASUREMENT and not record.trial.measure.layers
        if record.ok and measures and record.trial.workload.collective is None:
            summary = summarize(record)
            if summary is not None:
                runs.setdefault(record.trial.id, []).append((record, summary))
    return [_training(trial_runs, manner, ready) for trial_runs in runs.values()]


def collectives(records: Iterable[Record], manner: Callable[[Trial], Manner]) -> list[ObservedCollective]:
    """One observation per measured stand-alone collective."""
    runs: dict[str, list[Record]] = {}
    for record in records:
        if record.ok and record.trial.workload.collective is not None:
            runs.setdefault(record.trial.id, []).append(record)
    observations = []
    for trial_runs in runs.values():
        trial = trial_runs[0].trial
        asked = trial.workload.collective
        medians = [_medians(record) for record in trial_runs]
        sizes = sorted(set.intersection(*(set(median) for median in medians)))
        if asked is None or not sizes:
            continue
        times = np.array([[median[size] for size in sizes] for median in medians]) * trial.true_scale
        logs = np.log(times).mean(axis=1)
        observations.append(
            ObservedCollective(
                trial=trial,
                conditions=conditions_of(trial, manner(trial)),
                operation=asked.operation,
                sizes=np.array(sizes, dtype=float),
                seconds=times.mean(axis=0),
                runs=len(trial_runs),
                noise=float(logs.std(ddof=1)) if len(trial_runs) > 1 else 0.0,
            )
        )
    return observations


def _medians(record: Record) -> dict[int, float]:
    """Median seconds of a round for each size."""
    return {size: float(np.median(times)) for size, times in slowest_times(record).items()}


def _training(
    runs: Sequence[tuple[Record, RunSummary]],
    manner: Callable[[Trial], Manner],
    ready: Callable[[Trial], Ready | None],
) -> Training:
    record, _ = runs[0]
    trial, scale = record.trial, record.trial.true_scale
    trial_manner = manner(trial)
    messages, bucketed = messages_of(record)
    readiness = ready(trial) if bucketed or trial_manner.tensor_by_tensor else None
    if readiness and trial_manner.tensor_by_tensor:
        messages = readiness.bytes
    fractions = readiness.of_messages(messages) if readiness and messages else None
    phases, derived = _phases([summary for _, summary in runs])
    late = min(float(np.mean([late_input_s(summary) for _, summary in runs])), phases.get(COMMUNICATION, 0.0))
    if late:
        phases |= {DATA: phases[DATA] + late, COMMUNICATION: phases[COMMUNICATION] - late}
    passes = passes_of(record)
    asked = conditions_of(trial, trial_manner)
    peaks = [summary.peak_rss_rank_bytes for _, summary in runs if summary.peak_rss_rank_bytes]
    return Training(
        trial=trial,
        conditions=asked.change(messages=messages, fractions=fractions, passes=passes, batch=asked.batch / passes),
        steps_s=tuple(summary.step_s * scale for _, summary in runs),
        phases={name: seconds * scale for name, seconds in phases.items() if name not in mixed_in(record)},
        derived=derived,
        handed_over_s=_handed_over_s(runs),
        straggling=_straggling([summary for _, summary in runs]),
        peak_rss_bytes=float(np.mean(peaks)) if peaks else None,
    )


def messages_of(record: Record) -> tuple[tuple[float, ...], bool]:
    """(bytes of each message of a step, whether messages follow the order of the backward pass).

    Bytes are those the ranks report; without a report, one message carries all gradients. For a pipeline they are the
    bytes that one sample hands to the next stage. Workers of a user's program that never exchange send none.
    """
    facts = record.reported
    if never_exchanged(record):
        return (), False
    if handed := facts.hand_over_bytes_per_sample:
        return (handed,), False
    if sizes := facts.bucket_bytes or facts.unit_bytes:
        return sizes, True
    if whole := facts.message_bytes:
        count = max(1, facts.buckets or 1)
        return (whole / count,) * count, False
    size = record.input_facts.gradient_bytes or facts.gradient_bytes or 0.0
    if facts.wrapped == BUCKETED_BY:
        return buckets_of(None).sizes_of(size), True
    return ((size,) if size else ()), False


def passes_of(record: Record) -> int:
    """Micro-batches per worker and step; those of a pipeline are divided among its stages."""
    facts = record.reported
    if pipelined := facts.pipeline_micro_batches:
        return max(1, pipelined // record.trial.workers)
    return facts.micro_batches or 1


def mixed_in(record: Record) -> frozenset[str]:
    """Phases that mix compute and communication and therefore say nothing about compute."""
    mixed = record.reported.phases_mixed if record.trial.workers > 1 else None
    return frozenset(mixed.phases) if mixed else frozenset()


def _phases(summaries: Sequence[RunSummary]) -> tuple[dict[str, float], bool]:
    """(mean seconds of each phase over all runs, whether they were derived); {} for a fused step without derivation."""
    seconds_of: dict[str, list[float]] = {}
    derived = False
    for summary in summaries:
        parts = {name: phase.seconds for name, phase in summary.phases.items()}
        if FUSED in parts:
            if not summary.phases_derived:
                return {}, False
            del parts[FUSED]
            parts |= {name: max(0.0, phase.seconds) for name, phase in summary.phases_derived.items()}
            derived = True
        rest = summary.step_s - sum(parts.values())
        parts["overhead"] = parts.get("overhead", 0.0) + max(0.0, rest)
        for name, seconds in parts.items():
            seconds_of.setdefault(name, []).append(seconds)
    return {name: float(np.sum(values) / len(summaries)) for name, values in seconds_of.items()}, derived


def _handed_over_s(runs: Sequence[tuple[Record, RunSummary]]) -> float | None:
    """Mean over runs whose phases were timed without overlap; sums of operators overlap with compute."""
    timed = [
        phase.seconds * record.trial.true_scale
        for record, summary in runs
        if mixed_in(record) == HANDED_OVER
        and (phase := summary.phases_derived.get(COMMUNICATION)) is not None
        and phase.by == TAKEN_APART
    ]
    return float(np.mean(timed)) if timed else None


def late_input_s(summary: RunSummary) -> float:
    """Mean seconds per step in which ranks wait for ranks whose batch arrives later (record.lockstep)."""
    return summary.lockstep.late_input_s if summary.lockstep else 0.0


def _straggling(summaries: Sequence[RunSummary]) -> Straggling | None:
    steps = [summary.lockstep for summary in summaries if summary.lockstep is not None]
    # Forward and backward pass if both were timed; otherwise the step without communication and waiting.
    times = [step.passes if set(PASSES) <= set(step.phases_s) else step.others for step in steps]
    observed = [straggling_of(compute) for compute in times if compute is not None]
    if not observed:
        return None
    return Straggling(
        spread=float(np.mean([straggling.spread for straggling in observed])),
        persistence=float(np.mean([straggling.persistence for straggling in observed])),
        slowest=float(np.mean([straggling.slowest for straggling in observed])),
    )
