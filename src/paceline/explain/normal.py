"""Is this number normal? Against what the model says, what the machine can do, and what earlier runs took. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.explain.explanation import Yardstick
from paceline.explain.without import ModelledTrial
from paceline.model.forecast.predict import predict
from paceline.plan.trial import Trial
from paceline.record.peak import Peak
from paceline.stats import mean_interval
from paceline.units import format_seconds
from paceline.workloads.cost import cost
from paceline.workloads.graph import Graph

ROOFLINE, MODEL, EARLIER = "roofline", "model", "earlier runs"
LEAST_OF_ROOFLINE = 0.2
"""Training on processors usually reaches a fifth to three quarters of what they can do; below that, ask why."""
BEYOND_NOISE = 0.05
"""Earlier runs within this are the same, however sure the difference is."""
PASSES_OVER_MEMORY = 4
"""An output is written and read in the forward pass, and its gradient likewise in the backward pass."""


def by_model(setting: ModelledTrial, step_s: float) -> Yardstick:
    """Against the model that was fitted to all runs of the family."""
    said = predict(setting.calibration, setting.conditions).step
    low, high = said.interval
    normal = low <= step_s <= high
    words = "as expected" if normal else ("slower than" if step_s > high else "faster than") + " expected"
    return Yardstick(
        name=MODEL,
        expected_s=said.value,
        ratio=step_s / said.value,
        normal=normal,
        sentence=f"{words}: the model says {format_seconds(said.value)} "
        f"({format_seconds(low)} to {format_seconds(high)}, {said.level:.0%})",
    )


def by_roofline(step_s: float, *, flops: float, moved_bytes: float, peak: Peak, cores: float) -> Yardstick:
    """Against the roofline (Williams, Waterman and Patterson 2009): the longer of arithmetic and memory traffic.

    Args:
        flops, moved_bytes: of one worker and step.
        cores: that a worker has.
    """
    arithmetic = flops / (peak.flops_per_s * cores)
    # Memory is shared by all cores: what one core moved is already most of it.
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
        sentence=f"{1 / ratio:.0%} of what this machine can do at best, where {limit} is the limit"
        f"{'' if normal else f'; below {LEAST_OF_ROOFLINE:.0%} something else holds it back'}",
    )


def roofline_of(trial: Trial, step_s: float, graph: Graph | None, peak: Peak | None) -> Yardstick | None:
    """A trial's step against the roofline; None where the peak or the graph is not known, or nothing was computed."""
    if peak is None or graph is None or trial.framework.simulated or trial.cluster.device != "cpu":
        return None
    needed, batch = cost(graph), trial.workload.batch_per_worker
    return by_roofline(
        step_s,
        flops=(needed.forward_flops + needed.backward_flops) * batch,
        moved_bytes=PASSES_OVER_MEMORY * needed.activation_bytes * batch,
        peak=peak,
        cores=trial.cluster.threads_per_worker * trial.cluster.pace.computing_speed,
    )


def by_earlier(now_s: Sequence[float], earlier_s: Sequence[float]) -> Yardstick | None:
    """Against the user's own earlier runs of the same trial; None where there are none."""
    if not now_s or not earlier_s:
        return None
    ratio = float(np.mean(now_s) / np.mean(earlier_s))
    sure = False
    if len(now_s) > 1 and len(earlier_s) > 1:
        ours, theirs = mean_interval(now_s), mean_interval(earlier_s)
        known = None not in (ours.low, ours.high, theirs.low, theirs.high)
        sure = known and (
            float(ours.low or 0) > float(theirs.high or 0) or float(ours.high or 0) < float(theirs.low or 0)
        )
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
