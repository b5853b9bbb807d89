"""Judges whether a step time is normal: by the model, by the machine's roofline and by earlier runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.explain.explanation import Yardstick
from paceline.explain.without import ModelledTrial
from paceline.model.forecast.predict import predict
from paceline.plan.trial import Trial
from paceline.record.peak import Peak
from paceline.stats import FEWEST_WITH_SPREAD, mean_interval
from paceline.units import format_seconds
from paceline.workloads.cost import cost
from paceline.workloads.graph import Graph

ROOFLINE, MODEL, EARLIER = "roofline", "model", "earlier runs"
LEAST_OF_ROOFLINE = 0.2
"""Training on CPUs usually reaches 20 to 75 % of their peak; a smaller fraction is reported."""
BEYOND_NOISE = 0.05
"""A smaller relative difference from earlier runs counts as none, even if it is statistically certain."""
PASSES_OVER_MEMORY = 4
"""Each output is written and read in the forward pass, and so is its gradient in the backward pass."""


def by_model(setting: ModelledTrial, step_s: float) -> Yardstick:
    """Compares a step with the model that was fitted to all runs of the family."""
    predicted = predict(setting.calibration, setting.conditions).step
    low, high = predicted.interval
    normal = low <= step_s <= high
    words = "as expected" if normal else ("slower than" if step_s > high else "faster than") + " expected"
    return Yardstick(
        name=MODEL,
        expected_s=predicted.value,
        ratio=step_s / predicted.value,
        normal=normal,
        sentence=f"{words}: the model says {format_seconds(predicted.value)} "
        f"({format_seconds(low)} to {format_seconds(high)}, {predicted.level:.0%})",
    )


def by_roofline(step_s: float, *, flops: float, moved_bytes: float, peak: Peak, cores: float) -> Yardstick:
    """Compares a step with the roofline (Williams, Waterman and Patterson 2009).

    The bound is the longer of arithmetic and memory traffic.

    Args:
        step_s: the measured step.
        flops, moved_bytes: the work per worker and step.
        peak: what the machine can do.
        cores: the cores per worker.
    """
    arithmetic = flops / (peak.flops_per_s * cores)
    # All cores share the memory, and one core already reaches most of its bandwidth.
    memory = moved_bytes / peak.bytes_per_s
    bound = max(arithmetic, memory)
    ratio = step_s / bound
    normal = ratio <= 1 / LEAST_OF_ROOFLINE
    limit = "arithmetic" if arithmetic >= memory else "memory traffic"
    return Yardstick(
        name=ROOFLINE,
        expected_s=bound,
        ratio=ratio,
        normal=normal,
        sentence=f"{1 / ratio:.0%} of this machine's peak, limited by {limit}"
        f"{'' if normal else f'; below {LEAST_OF_ROOFLINE:.0%}, something else is the bottleneck'}",
    )


def roofline_of(trial: Trial, step_s: float, graph: Graph | None, peak: Peak | None) -> Yardstick | None:
    """Compares a trial's step with the roofline; None if the peak or graph is unknown, or if no CPU computed it."""
    if peak is None or graph is None or trial.framework.simulated or trial.cluster.device != "cpu":
        return None
    per_sample, batch = cost(graph), trial.workload.batch_per_worker
    return by_roofline(
        step_s,
        flops=(per_sample.forward_flops + per_sample.backward_flops) * batch,
        moved_bytes=PASSES_OVER_MEMORY * per_sample.activation_bytes * batch,
        peak=peak,
        cores=trial.cluster.threads_per_worker * trial.cluster.pace.computing_speed,
    )


def by_earlier(now_s: Sequence[float], earlier_s: Sequence[float]) -> Yardstick | None:
    """Compares a step with earlier runs of the same trial; None if there are none."""
    if not now_s or not earlier_s:
        return None
    ratio = float(np.mean(now_s) / np.mean(earlier_s))
    now, earlier = (mean_interval(steps, unit="s", least_runs=FEWEST_WITH_SPREAD).ends for steps in (now_s, earlier_s))
    sure = now is not None and earlier is not None and (now[0] > earlier[1] or now[1] < earlier[0])
    normal = not sure or abs(ratio - 1) <= BEYOND_NOISE
    before = f"{len(earlier_s)} earlier run{'s' if len(earlier_s) > 1 else ''}"
    word = "the same as" if normal else ("slower than" if ratio > 1 else "faster than")
    return Yardstick(
        name=EARLIER,
        expected_s=float(np.mean(earlier_s)),
        ratio=ratio,
        normal=normal,
        sentence=f"{word} in {before} ({ratio:.2f} times {format_seconds(float(np.mean(earlier_s)))})",
    )
