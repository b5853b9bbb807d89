"""What records say to the model, in its units: one observation a trial. Pure.

Times of a dilated site are given back their true scale: there, hosts and links are k times slower by design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.ready import Ready
from paceline.model.equations.step import Floats
from paceline.model.equations.stragglers import Straggling, straggling_of
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import REPLICATED, RING, Exchange, Sharing
from paceline.record.lockstep import DATA, PASSES
from paceline.record.phases import COMMUNICATION, FUSED
from paceline.record.record import MEASUREMENT, Record
from paceline.record.summary import RunSummary, slowest_times, summarize

HANDED_OVER = frozenset({COMMUNICATION, "update"})
"""Phases that are one where servers apply the optimizer."""
TAKEN_APART = "timers"
"""How phases are derived from steps in which nothing overlaps (record.fact.DERIVED_BY)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """Runs of one trial."""

    trial: Trial
    conditions: Conditions
    steps_s: tuple[float, ...]
    """Mean step of each run."""
    phases: Mapping[str, float]
    """Mean over runs; {} where only the whole step is known."""
    derived: bool
    """Whether phases were derived rather than timed."""
    handed_over_s: float | None = None
    """All of the exchange with the update that servers make of it, timed while nothing computes; None: not timed."""
    straggling: Straggling | None
    """Of its workers' computing; None where that is not timed."""
    peak_rss_bytes: float | None
    """Of the largest rank."""

    @property
    def step_s(self) -> float:
        return float(np.mean(self.steps_s))


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedCollective:
    """Runs of one collective by itself."""

    trial: Trial
    conditions: Conditions
    operation: str
    sizes: Floats
    seconds: Floats
    """Mean over runs."""
    runs: int = 1
    noise: float = 0.0
    """Standard deviation of the logarithm of these times from run to run, all sizes together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How a trial exchanges and is fed, as the caller knows it from the framework's capabilities."""

    exchange: Exchange = RING
    sharing: Sharing = REPLICATED
    every: int = 1
    """Steps from one exchange to the next."""
    unknown: str = ""
    """Why the model does not know this way of sharing a step; "": it does."""
    servers_per_host: int = 0
    """Of an exchange through servers."""
    tensor_by_tensor: bool = False
    """Whether each gradient is a message of its own, sent when it is there."""
    prefetch: bool = False
    """Whether the next input is fetched while a step computes."""


def conditions_of(trial: Trial, manner: Manner) -> Conditions:
    """A trial's conditions but for its messages."""
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
    """One observation for each trial that was measured, in order of appearance."""
    runs: dict[str, list[tuple[Record, RunSummary]]] = {}
    for record in records:
        # Hooks on every layer cost time: such a run tells when gradients are ready, not how long a step is.
        measures = record.kind == MEASUREMENT and not record.trial.measure.layers
        if record.ok and measures and record.trial.workload.collective is None:
            summary = summarize(record)
            if summary is not None:
                runs.setdefault(record.trial.id, []).append((record, summary))
    return [_training(mine, manner, ready) for mine in runs.values()]


def collectives(records: Iterable[Record], manner: Callable[[Trial], Manner]) -> list[ObservedCollective]:
    """One observation for each collective that was measured by itself."""
    runs: dict[str, list[Record]] = {}
    for record in records:
        if record.ok and record.trial.workload.collective is not None:
            runs.setdefault(record.trial.id, []).append(record)
    found = []
    for mine in runs.values():
        trial = mine[0].trial
        asked = trial.workload.collective
        medians = [_medians(record) for record in mine]
        sizes = sorted(set.intersection(*(set(one) for one in medians)))
        if asked is None or not sizes:
            continue
        times = np.array([[one[size] for size in sizes] for one in medians]) * trial.cluster.pace.true_scale
        logs = np.log(times).mean(axis=1)
        found.append(
            ObservedCollective(
                trial=trial,
                conditions=conditions_of(trial, manner(trial)),
                operation=asked.operation,
                sizes=np.array(sizes, dtype=float),
                seconds=times.mean(axis=0),
                runs=len(mine),
                noise=float(logs.std(ddof=1)) if len(mine) > 1 else 0.0,
            )
        )
    return found


def _medians(record: Record) -> dict[int, float]:
    """Size → seconds of the usual round."""
    return {size: float(np.median(times)) for size, times in slowest_times(record).items()}


def _training(
    runs: Sequence[tuple[Record, RunSummary]],
    manner: Callable[[Trial], Manner],
    ready: Callable[[Trial], Ready | None],
) -> Training:
    record, _ = runs[0]
    trial, scale = record.trial, record.trial.cluster.pace.true_scale
    how = manner(trial)
    messages, bucketed = messages_of(record)
    known = ready(trial) if bucketed or how.tensor_by_tensor else None
    if known and how.tensor_by_tensor:
        messages = known.bytes
    fractions = known.of_messages(messages) if known and messages else None
    phases, derived = _phases([summary for _, summary in runs])
    late = min(float(np.mean([late_input_s(summary) for _, summary in runs])), phases.get(COMMUNICATION, 0.0))
    if late:
        phases |= {DATA: phases[DATA] + late, COMMUNICATION: phases[COMMUNICATION] - late}
    passes = passes_of(record)
    asked = conditions_of(trial, how)
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
    """Bytes of the messages of a step as the ranks tell them (of a pipeline: what a sample hands over), and whether
    they are parts of the model that the backward pass goes through; of ranks that tell nothing, all gradients at once.
    """
    facts = record.reported
    if handed := facts.hand_over_bytes_per_sample:
        return (handed,), False
    if sizes := facts.bucket_bytes or facts.unit_bytes:
        return sizes, True
    if whole := facts.message_bytes:
        count = max(1, facts.buckets or 1)
        return (whole / count,) * count, False
    size = record.input_facts.gradient_bytes
    return ((size,) if size else ()), False


def passes_of(record: Record) -> int:
    """Micro-batches of a worker and step; those of a pipeline are dealt out over its stages."""
    facts = record.reported
    if pipelined := facts.pipeline_micro_batches:
        return max(1, pipelined // record.trial.workers)
    return facts.micro_batches or 1


def mixed_in(record: Record) -> frozenset[str]:
    """Phases that contain exchange which cannot be told apart: they say nothing about what is computed in them."""
    mixed = record.reported.phases_mixed if record.trial.workers > 1 else None
    return frozenset(mixed.phases) if mixed else frozenset()


def _phases(summaries: Sequence[RunSummary]) -> tuple[dict[str, float], bool]:
    """Parts of the step over all runs; a fused step by what was derived of it, or not at all."""
    found: dict[str, list[float]] = {}
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
            found.setdefault(name, []).append(seconds)
    return {name: float(np.sum(values) / len(summaries)) for name, values in found.items()}, derived


def _handed_over_s(runs: Sequence[tuple[Record, RunSummary]]) -> float | None:
    """Mean over runs whose parts of a step were timed one after the other; sums of operators hide behind computing."""
    told = [
        phase.seconds * record.trial.cluster.pace.true_scale
        for record, summary in runs
        if mixed_in(record) == HANDED_OVER
        and (phase := summary.phases_derived.get(COMMUNICATION)) is not None
        and phase.by == TAKEN_APART
    ]
    return float(np.mean(told)) if told else None


def late_input_s(summary: RunSummary) -> float:
    """Mean seconds a step in which ranks wait for others whose batch comes later (record.lockstep)."""
    return summary.lockstep.late_input_s if summary.lockstep else 0.0


def _straggling(summaries: Sequence[RunSummary]) -> Straggling | None:
    steps = [summary.lockstep for summary in summaries if summary.lockstep is not None]
    # Forward and backward pass where both are timed; else the step without what is spent in exchanging and waiting.
    times = [step.passes if set(PASSES) <= set(step.phases_s) else step.others for step in steps]
    seen = [straggling_of(computing) for computing in times if computing is not None]
    if not seen:
        return None
    return Straggling(
        spread=float(np.mean([one.spread for one in seen])),
        persistence=float(np.mean([one.persistence for one in seen])),
        slowest=float(np.mean([one.slowest for one in seen])),
    )
