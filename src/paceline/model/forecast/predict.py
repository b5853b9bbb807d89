"""Step time, throughput and efficiency of configurations that were never run, each with an interval. Pure.

The interval combines two errors: the uncertainty of the fitted parameters (the spread of the draws), and the error of
the model itself (conformal, from held-out trials). The second grows with every doubling beyond what was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.ready import Buckets, buckets_of
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.terms import StepTerms, bottleneck, shares, step_terms, steps_s
from paceline.model.fitting.calibration import Calibration
from paceline.plan.vocabulary import SERVER
from paceline.stats.estimate import MODELLED_LEVEL, Estimate
from paceline.stats.known_by import SIMULATED, KnownBy

WIDER_PER_DOUBLING = 0.5
"""Growth of the model's own error for each doubling beyond what was run."""
WORTH_PAYING = 0.5
"""Doubling the workers pays off only if it brings at least this fraction of a doubling in throughput."""
TINY = 1e-12
"""Shortest step in seconds; draws from a weakly determined fit may otherwise give 0."""
SIMULATED_DRAWS = 50
"""Number of draws when each needs an event simulation; enough for a 90 % interval."""
KNEE = 0.8
"""The scaling curve has its knee where efficiency falls below this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """The prediction for one configuration."""

    conditions: Conditions
    by: KnownBy
    step: Estimate
    throughput: Estimate
    efficiency: Estimate
    """Throughput per worker divided by that of a single worker with the same batch."""
    terms: StepTerms[float]
    bottleneck: str
    shares: dict[str, float]
    extrapolated_by: float
    """Factor by which the conditions lie outside what was run; 1 inside."""
    extrapolated: str
    """The same as a sentence; "" inside."""
    memory_bytes: float | None
    """Memory per worker."""

    def to_json(self) -> dict[str, object]:
        conditions = self.conditions
        return {
            "workers": conditions.workers,
            "hosts": conditions.hosts,
            "batch": conditions.samples,
            "by": self.by,
            "step_s": self.step.to_json(),
            "throughput": self.throughput.to_json(),
            "efficiency": self.efficiency.to_json(),
            "exposed_s": self.terms.exposed_s,
            "exchange_s": self.terms.exchange_s,
            "bottleneck": self.bottleneck,
            "shares": self.shares,
            "extrapolated_by": self.extrapolated_by,
            "extrapolated": self.extrapolated,
            "memory_bytes": self.memory_bytes,
        }


def predict(calibration: Calibration, conditions: Conditions) -> Prediction:
    """Predict the step under these conditions."""
    terms = step_terms(calibration.vector, conditions, calibration.straggling)
    alone = conditions.alone()
    single = step_terms(calibration.vector, alone, calibration.straggling).step_s
    draws = calibration.draws[:SIMULATED_DRAWS] if conditions.is_simulated else calibration.draws
    steps = steps_of(draws, conditions, calibration.straggling)
    factor, axis = calibration.hull.beyond(conditions)
    own = calibration.residual * (1 + WIDER_PER_DOUBLING * np.log2(factor))
    by = SIMULATED if conditions.is_simulated else calibration.by
    step = estimated(terms.step_s, steps, own, "s", by)
    ratios = steps_of(draws, alone, calibration.straggling) / steps
    efficiency = estimated(single / terms.step_s, ratios, own, "1", by).at_most(1.0)
    samples = conditions.workers * conditions.samples
    words = f"extrapolated × {factor:.2g} beyond {axis} that were run" if axis else ""
    memory = calibration.memory
    return Prediction(
        conditions=conditions,
        by=by,
        step=step,
        throughput=step.over(samples, "samples/s"),
        efficiency=efficiency,
        terms=terms,
        bottleneck=bottleneck(terms),
        shares=shares(terms),
        extrapolated_by=factor,
        extrapolated=words,
        memory_bytes=memory[0] + memory[1] * conditions.batch if memory else None,
    )


def steps_of(vectors: Floats, conditions: Conditions, straggling: Straggling) -> Floats:
    """Step time in seconds for each vector; never 0, so that ratios are defined for every draw."""
    return np.maximum(steps_s(vectors, conditions, straggling), TINY)


def estimated(value: float, draws: Floats, own: float, unit: str, by: KnownBy) -> Estimate:
    """An estimate whose interval combines the spread of the draws and the model's own error as independent errors."""
    tail = (1 - MODELLED_LEVEL) / 2
    logs = np.log(np.maximum(draws, TINY) / value) if len(draws) else np.zeros(1)
    down, up = np.quantile(logs, [tail, 1 - tail])
    low, high = -np.hypot(min(down, 0.0), own), np.hypot(max(up, 0.0), own)
    return Estimate(
        value=value,
        low=value * float(np.exp(low)),
        high=value * float(np.exp(high)),
        level=MODELLED_LEVEL,
        unit=unit,
        by=by,
        n_runs=None,
    )


def conditions_for(
    calibration: Calibration,
    *,
    workers: int,
    workers_per_host: int = 1,
    batch: float | None = None,
    bandwidth: float | None = None,
    latency_s: float | None = None,
) -> Conditions:
    """Conditions of the calibrated family for another size, batch (per worker and step) and network."""
    hosts = max(1, -(-workers // workers_per_host))
    servers = max(1, calibration.servers_per_host * hosts) if calibration.exchange == SERVER else 1
    messages, ready, passes = calibration.messages, calibration.ready, calibration.passes
    fractions = ready.of_messages(messages) if calibration.bucketed and ready and messages else None
    return Conditions(
        workers=workers,
        hosts=hosts,
        batch=(calibration.hull.batch[1] if batch is None else batch) / passes,
        passes=passes,
        every=calibration.every,
        sharing=calibration.sharing,
        bandwidth=bandwidth,
        latency_s=latency_s,
        messages=messages,
        fractions=fractions,
        exchange=calibration.exchange,
        servers=servers,
        prefetch=calibration.prefetch,
    )


def with_buckets(calibration: Calibration, conditions: Conditions, bucket_bytes: float | None) -> Conditions:
    """The same conditions with another bucket size; an infinite one means no overlap."""
    ready = calibration.ready
    if ready is None:
        return conditions
    buckets = Buckets(first_bytes=np.inf, cap_bytes=np.inf) if bucket_bytes == np.inf else buckets_of(bucket_bytes)
    messages = ready.bucketed(buckets)
    return conditions.change(messages=messages, fractions=ready.of_messages(messages))


def knee(predictions: Sequence[Prediction]) -> int | None:
    """The largest number of workers with efficiency above KNEE; None if it never falls below."""
    curve = sorted(predictions, key=lambda prediction: prediction.conditions.workers)
    if all(prediction.efficiency.value >= KNEE for prediction in curve):
        return None
    above = [prediction.conditions.workers for prediction in curve if prediction.efficiency.value >= KNEE]
    return max(above, default=curve[0].conditions.workers)


def worth_paying(predictions: Sequence[Prediction]) -> int:
    """The number of workers worth paying for: adding more brings less than WORTH_PAYING of what it costs."""
    curve = sorted(predictions, key=lambda prediction: prediction.conditions.workers)
    best = curve[0]
    for prediction in curve[1:]:
        more = np.log(prediction.conditions.workers / best.conditions.workers)
        gain = np.log(prediction.throughput.value / best.throughput.value)
        if gain < WORTH_PAYING * more:
            break
        best = prediction
    return best.conditions.workers
