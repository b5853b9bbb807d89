"""What to do about each cause, as far as a study can do it, with what the model says it would bring. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from paceline.explain.finding import Remedy, promised
from paceline.explain.without import MOST_DRAWS, ModelledTrial
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.step import Floats
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
from paceline.model.forecast.predict import estimated, step_of
from paceline.model.forecast.what_if import best_bucket, changed, parse_changes
from paceline.plan.trial import Trial
from paceline.spec.networks import NETWORKS
from paceline.stats.estimate import Estimate
from paceline.units import format_bytes

FASTER = 3.0
"""A link is proposed that is at least so many times as fast: the next name in the list is often hardly one."""
LEAST_LEFT = 0.01
"""Of a step, when a cause is gone."""
BUCKET_KNOB = "bucket_bytes"
"""What every framework that sends gradients in buckets calls their size."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What a change starts from."""

    trial: Trial
    setting: ModelledTrial
    cores: int | None
    """Of a host, for all of its workers; None: not known."""
    slow_host: str | None = None
    """Whose rank is slower for good."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """Cause → its part of the step, where timers tell it."""


def change_for(cause: str, case: Case) -> Remedy | None:
    """What to change; None where nobody knows."""
    return CHANGES[cause](case) if cause in CHANGES else None


def _input(case: Case) -> Remedy:
    workload, cluster = case.trial.workload, case.trial.cluster
    if workload.input != "pipeline":
        return Remedy(
            words="fetch the next batch while the step computes, or make it cheaper to read",
            what_if="input=x2",
            gain=_predicted(case, "input=x2"),
        )
    if case.cores and case.cores > cluster.workers_per_host * cluster.threads_per_worker:
        more = max(1, workload.loader_workers * 2)
        return Remedy(
            words=f"feed it by {more} loader processes a worker instead of {workload.loader_workers}",
            axes={"workload.loader_workers": more},
            what_if=f"loaders={more}",
            gain=_loaded(case, f"loaders={more}"),
        )
    return Remedy(
        words="prepare samples once and keep them in memory: loader processes would take the cores that compute",
        axes={"workload.input": "resident", "workload.loader_workers": 0},
        what_if="input=x1000",
        gain=_without_input(case),
    )


def _loaded(case: Case, what_if: str) -> Estimate:
    """What more loaders bring: perhaps nothing, where they take what computing needs; at most what no input would."""
    gain = _predicted(case, what_if)
    low, high = gain.interval
    return replace(gain, low=min(low, 1.0), high=max(high, _without_input(case).interval[1]))


def _without_input(case: Case) -> Estimate:
    """Timers know this trial's input better than a model of all sizes. At most, what input takes from computing (cores,
    caches) is gone with it.
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
        for name, one in NETWORKS.items()
        if rate and one.latency_s is None and one.bandwidth_bytes_per_s and one.bandwidth_bytes_per_s >= FASTER * rate
    ]
    if rate and faster:
        wanted = NETWORKS[faster[0]].bandwidth_bytes_per_s or rate
        what_if = f"bandwidth=x{wanted / rate:g}"
        return Remedy(
            words=f"take a faster link: {faster[0]}",
            axes={"cluster.network": faster[0]},
            what_if=what_if,
            gain=_predicted(case, what_if),
        )
    return Remedy(
        words="send fewer bytes (fp16 gradients, exchange every few steps) or take a faster link",
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
        words="take links with less latency, or exchange less often (gradient accumulation)",
        what_if="latency=x0.5",
        gain=_predicted(case, "latency=x0.5"),
    )


def _larger_buckets(setting: ModelledTrial) -> tuple[float, Conditions]:
    """(bytes, conditions) with the best bucket that is known; where buckets just split the message, all in one."""
    conditions = setting.conditions
    whole = float(conditions.sizes.sum())
    if (best := best_bucket(setting.calibration, conditions)) is not None:
        (change,) = parse_changes(f"bucket={best[0] / 2**20:g}MiB")
        return best[0], change.apply(setting.calibration, conditions)[1]
    return whole, conditions.change(messages=(whole,))


def _contention(case: Case) -> Remedy:
    cluster = case.trial.cluster
    wanted = cluster.threads_per_worker * cluster.workers_per_host
    if case.cores and wanted > case.cores:
        threads = max(1, case.cores // cluster.workers_per_host)
        crowd = cluster.threads_per_worker / threads
        left = max(1 - case.measured.get(CONTENTION, 0.0), LEAST_LEFT)
        return Remedy(
            words=f"use {threads} thread{'s' if threads > 1 else ''} a worker: {wanted} threads want {case.cores} core"
            f"{'s' if case.cores > 1 else ''}",
            axes={"cluster.threads_per_worker": threads},
            # Threads that just take turns lose nothing; of those that spin while others want the core, nobody can tell
            # how much of what they compute is spinning.
            gain=promised(1 / left, 1.0, crowd / left),
        )
    return Remedy(words="give computing and communication cores of their own, or use fewer threads", gain=None)


def _overhead(case: Case) -> Remedy:
    batch, setting = case.trial.workload.batch_per_worker * 2, case.setting
    gain = _ratio(setting, setting.conditions.change(batch=setting.conditions.batch * 2), samples=2.0)
    return Remedy(
        words=f"do more in each step: batch {batch} a worker (check the accuracy: the global batch changes), or "
        "compile the step",
        axes={"workload.batch_per_worker": batch},
        gain=gain,
    )


def _straggler(case: Case) -> Remedy:
    gain = case.setting.gain([STRAGGLER])
    if case.slow_host:
        return Remedy(
            words=f"look at host {case.slow_host}, or leave it out: its worker is slower for good",
            what_if="stragglers=none",
            gain=gain,
        )
    return Remedy(
        words="find what makes workers take turns in being slow: pin them, stop what runs beside them",
        what_if="stragglers=none",
        gain=gain,
    )


def _compute(case: Case) -> Remedy:
    return Remedy(
        words="only faster computing helps: a device twice as fast, lower precision, a compiled step, or more workers",
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
    """Step now ÷ step after a change, by the model."""
    setting = case.setting
    calibration, conditions = changed(setting.calibration, setting.conditions, parse_changes(what_if))
    return _ratio(setting, conditions, calibration)


def _ratio(
    setting: ModelledTrial, conditions: Conditions, after: Calibration | None = None, *, samples: float = 1.0
) -> Estimate:
    """Throughput under other conditions ÷ throughput now; `samples` times as many a step."""
    before = setting.calibration
    after = after or before

    def ratio(now: Floats, then: Floats) -> float:
        step_s = step_of(now, setting.conditions, before.straggling)
        return samples * step_s / step_of(then, conditions, after.straggling)

    pairs = zip(before.draws[:MOST_DRAWS], after.draws[:MOST_DRAWS], strict=True)
    draws = np.array([ratio(now, then) for now, then in pairs])
    return estimated(ratio(before.vector, after.vector), draws, before.residual, "1", before.by)
