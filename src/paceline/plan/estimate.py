"""How long a run will take, before it is run: from earlier runs of the same trial, else guessed from FLOPs.

The guess is for planning an afternoon, not for comparing anything: it says "guessed", and the first run corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.plan.capabilities import Capabilities
from paceline.plan.trial import Trial
from paceline.workloads.collective import Collective
from paceline.workloads.workload import Workload, known_sizes

GUESSED_FLOPS_PER_CORE = 4e10
"""fp32 training on one core of a current server with a tuned library: 1e10 to 5e10 were seen; within them, so that
an estimate errs by a factor of two or three, not of ten."""
STEP_OVERHEAD_S = 2e-3
"""A step of the smallest models is bound by calls, not by FLOPs."""

STARTING_S = 0.05
"""Of one more process whose times are simulated: it waits for nothing but an interpreter and a core."""
GUESSED_BYTES_PER_S = 2.5e8
"""Of a collective between processes of one machine, all copies counted; a link that is known to be slower counts."""


def make_estimate(
    capabilities: Mapping[str, Capabilities],
    workload: Callable[[str, Mapping[str, Any]], Workload],
    seen_s: Mapping[str, float],
) -> Callable[[Trial], float]:
    """A function from trial to seconds. `seen_s`: trial id → elapsed seconds of earlier runs."""

    def estimate(trial: Trial) -> float:
        if trial.id in seen_s:
            return seen_s[trial.id]
        known = capabilities[trial.framework.name]
        if trial.framework.simulated:
            return known.startup_s + STARTING_S * (trial.ranks - 1)
        if (collective := trial.workload.collective) is not None:
            step = _guess_round_s(trial, collective)
        else:
            step = known.guess_step_s(trial) if known.guess_step_s else _guess_step_s(trial)
        return (
            known.startup_s + step * (trial.measure.warmup_steps + trial.measure.steps)
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
    """Of an exchange, before the pace: a share of a core slows no link, slow motion slows all."""
    network = trial.cluster.network
    link = network.bandwidth_bytes_per_s if network else None
    return GUESSED_BYTES_PER_S if link is None else min(GUESSED_BYTES_PER_S, link / trial.cluster.pace.computing_speed)
