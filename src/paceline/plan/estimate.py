"""Estimate how long a run will take: from earlier runs of the same trial, or else guessed from FLOPs.

The guess is good enough to plan an afternoon and not to compare anything; it is replaced after the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paceline.plan.capabilities import Capabilities
from paceline.plan.trial import Trial
from paceline.spec.trained import WorkloadOf
from paceline.workloads.collective import Collective
from paceline.workloads.workload import known_sizes

GUESSED_FLOPS_PER_CORE = 4e10
"""fp32 training on one core of a current server with a tuned library. Measured values range from 1e10 to 5e10, so an
estimate is wrong by a factor of two or three and not of ten."""
STEP_OVERHEAD_S = 2e-3
"""Fixed cost per step: a step of the smallest models is bound by calls, not by FLOPs."""

STARTING_S = 0.05
"""Cost of one more process whose times are simulated: it waits only for its interpreter and for a core."""
GUESSED_BYTES_PER_S = 2.5e8
"""Rate of a collective between processes of one machine, all copies counted; a slower configured link replaces it."""


def make_estimate(
    capabilities: Mapping[str, Capabilities],
    workload: WorkloadOf,
    seen_s: Mapping[str, float],
) -> Callable[[Trial], float]:
    """A function from a trial to the seconds of one run.

    Args:
        capabilities: framework → its capabilities.
        workload: reads a workload by model and options.
        seen_s: trial id → elapsed seconds of earlier runs.
    """

    def estimate(trial: Trial) -> float:
        if trial.id in seen_s:
            return seen_s[trial.id]
        framework = capabilities[trial.framework.name]
        if trial.framework.simulated:
            return framework.startup_s + STARTING_S * (trial.ranks - 1)
        if (collective := trial.workload.collective) is not None:
            step = _guess_round_s(trial, collective)
        else:
            step = framework.guess_step_s(trial) if framework.guess_step_s else _guess_step_s(trial)
        return (
            framework.startup_s + step * (trial.measure.warmup_steps + trial.measure.steps)
        ) / trial.cluster.pace.granted

    def _guess_step_s(trial: Trial) -> float:
        sizes = known_sizes(workload(trial.workload.model, trial.workload.options))
        flops = (
            sum(sizes.get(name, 0) for name in ("forward_flops", "backward_flops")) * trial.workload.batch_per_worker
        )
        computing = STEP_OVERHEAD_S + flops / (GUESSED_FLOPS_PER_CORE * trial.cluster.threads_per_worker)
        exchanged = 2 * (trial.workers - 1) / trial.workers * sizes.get("gradient_bytes", 0)
        return computing + exchanged / _bytes_per_s(trial)

    return estimate


def _guess_round_s(trial: Trial, collective: Collective) -> float:
    return sum(STEP_OVERHEAD_S + size / _bytes_per_s(trial) for size in collective.sizes)


def _bytes_per_s(trial: Trial) -> float:
    """Rate of an exchange before the pace is applied: a core share does not slow links, dilation slows everything."""
    network = trial.cluster.network
    link = network.bandwidth_bytes_per_s if network else None
    return GUESSED_BYTES_PER_S if link is None else min(GUESSED_BYTES_PER_S, link / trial.cluster.pace.computing_speed)
