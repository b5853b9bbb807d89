"""Proposes a remedy for each cause, with the gain that the model predicts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from paceline.explain.finding import Remedy, promised
from paceline.explain.without import MOST_DRAWS, ModelledTrial
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.terms import (
    BANDWIDTH,
    COMPUTE,
    CONTENTION,
    INPUT,
    LATENCY,
    OVERHEAD,
    STRAGGLER,
)
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.predict import estimated, steps_of, with_buckets
from paceline.model.forecast.what_if import best_bucket, changed, parse_changes
from paceline.plan.trial import Trial
from paceline.spec.networks import NETWORKS
from paceline.stats.estimate import Estimate
from paceline.units import format_bytes

FASTER = 3.0
"""Only links at least this many times as fast are proposed: the next name in the list is often hardly faster."""
LEAST_LEFT = 0.01
"""The smallest fraction of a step that may remain when a cause is removed."""
BUCKET_KNOB = "bucket_bytes"
"""The knob for the bucket size; every framework that sends gradients in buckets uses this name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """The trial that a remedy is proposed for, with what was measured of it."""

    trial: Trial
    setting: ModelledTrial
    cores: int | None
    """The cores of a host that all of its workers share; None if unknown."""
    slow_host: str | None = None
    """The host whose rank is consistently slower; None if there is none."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """Cause → its measured share of the step, for the causes that timers cover."""


def change_for(cause: str, case: Case) -> Remedy | None:
    """Returns the remedy for a cause, or None if there is none."""
    return CHANGES[cause](case) if cause in CHANGES else None


def _input(case: Case) -> Remedy:
    workload, cluster = case.trial.workload, case.trial.cluster
    if workload.input != "pipeline":
        return Remedy(
            words="prefetch the next batch during the step, or make samples cheaper to load",
            what_if="input=x2",
            gain=_predicted(case, "input=x2"),
        )
    if case.cores and case.cores > cluster.workers_per_host * cluster.threads_per_worker:
        loaders = max(1, workload.loader_workers * 2)
        processes = "process" if loaders == 1 else "processes"
        return Remedy(
            words=f"use {loaders} loader {processes} per worker instead of {workload.loader_workers}",
            axes={"workload.loader_workers": loaders},
            what_if=f"loaders={loaders}",
            gain=_loaded(case, f"loaders={loaders}"),
        )
    return Remedy(
        words="preprocess the samples once and keep them in memory: more loader processes would take cores from "
        "computation",
        axes={"workload.input": "resident", "workload.loader_workers": 0},
        what_if="input=x1000",
        gain=_without_input(case),
    )


def _loaded(case: Case, what_if: str) -> Estimate:
    """Predicts the gain of more loaders.

    The lower end is no gain, because loaders may take cores from computation. The upper end is a step without input.
    """
    gain = _predicted(case, what_if)
    low, high = gain.interval
    return replace(gain, low=min(low, 1.0), high=max(high, _without_input(case).interval[1]))


def _without_input(case: Case) -> Estimate:
    """Predicts the gain of a step without input.

    The trial's own timers are preferred to the model, which is fitted to all sizes. The upper end also removes the
    cores and caches that input takes from computation.
    """
    modelled = case.setting.gain([INPUT])
    low, (_, high) = modelled.interval[0], case.setting.gain([INPUT, CONTENTION]).interval
    if INPUT not in case.measured:
        return replace(modelled, high=high)
    left = max(1 - case.measured[INPUT], LEAST_LEFT)
    unsure = float(np.exp(case.setting.calibration.residual))
    bare = max(left - case.measured.get(CONTENTION, 0.0), LEAST_LEFT)
    return replace(modelled, value=1 / left, low=min(low, 1 / left / unsure), high=max(high, unsure / bare))


def _bandwidth(case: Case) -> Remedy:
    network = case.trial.cluster.network
    rate = network.bandwidth_bytes_per_s if network else None
    faster = [
        name
        for name, link in NETWORKS.items()
        if rate
        and link.latency_s is None
        and link.bandwidth_bytes_per_s
        and link.bandwidth_bytes_per_s >= FASTER * rate
    ]
    if rate and faster:
        wanted = NETWORKS[faster[0]].bandwidth_bytes_per_s or rate
        what_if = f"bandwidth=x{wanted / rate:g}"
        return Remedy(
            words=f"use a faster network: {faster[0]}",
            axes={"cluster.network": faster[0]},
            what_if=what_if,
            gain=_predicted(case, what_if),
        )
    return Remedy(
        words="send fewer bytes (fp16 gradients, gradient accumulation) or use a faster network",
        what_if="compression=fp16",
        gain=_predicted(case, "compression=fp16"),
    )


def _latency(case: Case) -> Remedy:
    setting = case.setting
    if len(setting.conditions.messages) > 1 and BUCKET_KNOB in case.trial.framework.knobs:
        size, conditions = _larger_buckets(setting)
        return Remedy(
            words=f"send gradients in larger buckets: {format_bytes(size)}",
            axes={f"framework.{case.trial.framework.name}.{BUCKET_KNOB}": round(size)},
            what_if=f"bucket={size / 2**20:g}MiB",
            gain=_ratio(setting, conditions),
        )
    return Remedy(
        words="use a network with lower latency, or exchange less often (gradient accumulation)",
        what_if="latency=x0.5",
        gain=_predicted(case, "latency=x0.5"),
    )


def _larger_buckets(setting: ModelledTrial) -> tuple[float, Conditions]:
    """Returns the best bucket size in bytes and the conditions with it; a single bucket if no best size is known."""
    conditions = setting.conditions
    whole = float(conditions.sizes.sum())
    if (best := best_bucket(setting.calibration, conditions)) is not None:
        return best[0], with_buckets(setting.calibration, conditions, best[0])
    return whole, conditions.change(messages=(whole,))


def _contention(case: Case) -> Remedy:
    cluster = case.trial.cluster
    wanted = cluster.threads_per_worker * cluster.workers_per_host
    if case.cores and wanted > case.cores:
        threads = max(1, case.cores // cluster.workers_per_host)
        crowd = cluster.threads_per_worker / threads
        left = max(1 - case.measured.get(CONTENTION, 0.0), LEAST_LEFT)
        return Remedy(
            words=f"use {threads} thread{'s' if threads > 1 else ''} per worker: {wanted} threads compete for "
            f"{case.cores} core{'s' if case.cores > 1 else ''}",
            axes={"cluster.threads_per_worker": threads},
            # Threads that only take turns lose nothing. Threads that spin while others need the core lose an unknown
            # part of their time, so the upper end counts all of it.
            gain=promised(1 / left, 1.0, crowd / left),
        )
    return Remedy(words="give computation and communication separate cores, or use fewer threads", gain=None)


def _overhead(case: Case) -> Remedy:
    batch, setting = case.trial.workload.batch_per_worker * 2, case.setting
    gain = _ratio(setting, setting.conditions.change(batch=setting.conditions.batch * 2), samples=2.0)
    return Remedy(
        words=f"do more work per step: batch {batch} per worker (the global batch changes, so check the accuracy), or "
        "compile the step",
        axes={"workload.batch_per_worker": batch},
        gain=gain,
    )


def _straggler(case: Case) -> Remedy:
    gain = case.setting.gain([STRAGGLER])
    if case.slow_host:
        return Remedy(
            words=f"check host {case.slow_host}, or leave it out: its worker is consistently slower",
            what_if="stragglers=none",
            gain=gain,
        )
    return Remedy(
        words="find out why the slowest worker changes from step to step: pin workers to cores, stop other programs",
        what_if="stragglers=none",
        gain=gain,
    )


def _compute(case: Case) -> Remedy:
    return Remedy(
        words="only faster computation helps: a faster device, lower precision, a compiled step, or more workers",
        what_if="compute=x2",
        gain=_predicted(case, "compute=x2"),
    )


CHANGES: dict[str, Callable[[Case], Remedy]] = {
    INPUT: _input,
    BANDWIDTH: _bandwidth,
    LATENCY: _latency,
    CONTENTION: _contention,
    OVERHEAD: _overhead,
    STRAGGLER: _straggler,
    COMPUTE: _compute,
}


def _predicted(case: Case, what_if: str) -> Estimate:
    """Predicts the step now ÷ the step after a change."""
    setting = case.setting
    calibration, conditions = changed(setting.calibration, setting.conditions, parse_changes(what_if))
    return _ratio(setting, conditions, calibration)


def _ratio(
    setting: ModelledTrial, conditions: Conditions, after: Calibration | None = None, *, samples: float = 1.0
) -> Estimate:
    """Predicts the throughput under other conditions ÷ the throughput now.

    Args:
        setting: the trial as it is.
        conditions: the changed conditions.
        after: the changed calibration; None if it does not change.
        samples: the samples per step after the change ÷ before.
    """
    before = setting.calibration
    after = after or before

    # The first vector is the calibration itself, the others are its draws.
    now_s = steps_of(np.vstack([before.vector, before.draws[:MOST_DRAWS]]), setting.conditions, before.straggling)
    then_s = steps_of(np.vstack([after.vector, after.draws[:MOST_DRAWS]]), conditions, after.straggling)
    value, *draws = samples * now_s / then_s
    return estimated(float(value), np.array(draws), before.residual, "1", before.by)
