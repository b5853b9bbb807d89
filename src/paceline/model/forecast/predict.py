"""Step time, throughput and efficiency of configurations that were never run, each with an interval. Pure.

The interval has two parts: what calibration does not know of its parameters (the spread of its draws), and what the
model itself gets wrong (conformal, from held-out trials), which grows with every doubling beyond what was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.ready import buckets_of
from paceline.model.equations.step import Buckets, Floats
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.terms import StepTerms, bottleneck, shares, step_terms
from paceline.model.fitting.calibration import Calibration
from paceline.plan.vocabulary import SERVER
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import SIMULATED, KnownBy

LEVEL = 0.90
WIDER_PER_DOUBLING = 0.5
"""By which the model's own error is taken to grow with each doubling beyond what was run."""
WORTH_PAYING = 0.5
"""A doubling of workers that brings less than this part of a doubling of throughput is not worth its price."""
TINY = 1e-12
"""Seconds that no step takes less than; a draw of a fit that rests on little may take none."""
SIMULATED_DRAWS = 50
"""Of the calibration's draws, where each is an event simulation: enough for a 90 % interval."""
KNEE = 0.8
"""The curve has its knee where efficiency falls below this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One configuration."""

    conditions: Conditions
    by: KnownBy
    step: Estimate
    throughput: Estimate
    efficiency: Estimate
    """Throughput a worker over that of one worker alone with the same batch."""
    terms: StepTerms
    bottleneck: str
    shares: dict[str, float]
    extrapolated_by: float
    """How far outside of what was run, as a factor; 1: inside."""
    extrapolated: str
    """The same in words; "" inside."""
    memory_bytes: float | None
    """Of a worker."""

    def to_json(self) -> dict[str, object]:
        asked = self.conditions
        return {
            "workers": asked.workers,
            "hosts": asked.hosts,
            "batch": asked.samples,
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
    """What the model says of these conditions."""
    terms = step_terms(calibration.vector, conditions, calibration.straggling)
    alone = conditions.alone()
    single = step_terms(calibration.vector, alone, calibration.straggling).step_s
    draws = calibration.draws[:SIMULATED_DRAWS] if conditions.is_simulated else calibration.draws
    steps = _steps(calibration, conditions, draws)
    factor, what = calibration.hull.beyond(conditions)
    own = calibration.residual * (1 + WIDER_PER_DOUBLING * np.log2(factor))
    by = SIMULATED if conditions.is_simulated else calibration.by
    step = estimated(terms.step_s, steps, own, "s", by)
    kept = estimated(single / terms.step_s, _steps(calibration, alone, draws) / steps, own, "1", by).at_most(1.0)
    samples = conditions.workers * conditions.samples
    words = f"extrapolated × {factor:.2g} beyond {what} that were run" if what else ""
    memory = calibration.memory
    return Prediction(
        conditions=conditions,
        by=by,
        step=step,
        throughput=step.over(samples, "samples/s"),
        efficiency=kept,
        terms=terms,
        bottleneck=bottleneck(terms),
        shares=shares(terms),
        extrapolated_by=factor,
        extrapolated=words,
        memory_bytes=memory[0] + memory[1] * conditions.batch if memory else None,
    )


def _steps(calibration: Calibration, conditions: Conditions, draws: Floats) -> Floats:
    """Of each draw."""
    return np.array([step_of(draw, conditions, calibration.straggling) for draw in draws])


def step_of(vector: Floats, conditions: Conditions, straggling: Straggling) -> float:
    """Seconds of a step; never 0, so that ratios can be taken of a draw that explains nothing."""
    return max(step_terms(vector, conditions, straggling).step_s, TINY)


def estimated(value: float, draws: Floats, own: float, unit: str, by: KnownBy) -> Estimate:
    """What a model says, with its interval: the spread of the draws and the model's own error, as independent."""
    tail = (1 - LEVEL) / 2
    logs = np.log(np.maximum(draws, TINY) / value) if len(draws) else np.zeros(1)
    down, up = np.quantile(logs, [tail, 1 - tail])
    low, high = -np.hypot(min(down, 0.0), own), np.hypot(max(up, 0.0), own)
    return Estimate(
        value=value,
        low=value * float(np.exp(low)),
        high=value * float(np.exp(high)),
        level=LEVEL,
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
    """Conditions of the family that was calibrated, for another size, batch (of a worker and step) and network."""
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
    """The same with buckets of another size; an endless one is no overlap."""
    ready = calibration.ready
    if ready is None:
        return conditions
    buckets = Buckets(first_bytes=np.inf, cap_bytes=np.inf) if bucket_bytes == np.inf else buckets_of(bucket_bytes)
    messages = ready.bucketed(buckets)
    return conditions.change(messages=messages, fractions=ready.of_messages(messages))


def knee(predictions: Sequence[Prediction]) -> int | None:
    """The most workers at which efficiency is still above KNEE; None where it never falls below."""
    curve = sorted(predictions, key=lambda one: one.conditions.workers)
    if all(one.efficiency.value >= KNEE for one in curve):
        return None
    above = [one.conditions.workers for one in curve if one.efficiency.value >= KNEE]
    return max(above, default=curve[0].conditions.workers)


def worth_paying(predictions: Sequence[Prediction]) -> int:
    """How many workers are worth paying for: the last at which going there still brings half of what it costs more."""
    curve = sorted(predictions, key=lambda one: one.conditions.workers)
    best = curve[0]
    for one in curve[1:]:
        more = np.log(one.conditions.workers / best.conditions.workers)
        gain = np.log(one.throughput.value / best.throughput.value)
        if gain < WORTH_PAYING * more:
            break
        best = one
    return best.conditions.workers
