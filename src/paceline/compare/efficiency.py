"""Scaling efficiency: the throughput per worker with n workers, relative to that with the fewest.

A family is a set of trials that differ only in the number of hosts and workers (and, in strong scaling, in the batch
per worker that follows). The threads per worker are the same in a family: 1 worker × 2 threads and 2 workers × 1 thread
use the same cores, but their ratio is not a scaling efficiency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.compare.runs import Runs
from paceline.plan.trial import Trial
from paceline.record.program_checks import never_exchanged
from paceline.stats import LEAST_RUNS, ratio_interval
from paceline.stats.estimate import Estimate, exactly


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """How well one trial scales."""

    efficiency: Estimate | None
    """The throughput per worker ÷ that of the base; exactly 1 for the base itself; None if it is unknown."""
    speedup: Estimate | None
    """The throughput ÷ that of the base."""
    base: int | None
    """The index of the base among the groups; None if there is no base."""
    note: str | None
    """Why there is no efficiency; None if there is one."""


def scaling(groups: Sequence[Runs]) -> list[Scaling]:
    """Returns the efficiency of each group against the fewest workers of its family, paired by round."""
    families = [family(group.trial).id for group in groups]
    members: dict[str, list[int]] = {}
    for index, name in enumerate(families):
        members.setdefault(name, []).append(index)
    results = []
    for index, group in enumerate(groups):
        relatives = [i for i in members[families[index]] if i == index or _comparable(group, groups[i])]
        base = min(relatives, key=lambda i: _size(groups[i].trial, group.trial, i))
        results.append(_against(base, index, groups, alone=len(relatives) == 1))
    return results


def family(trial: Trial) -> Trial:
    """Returns the trial without its size and links, which is equal for all members of a family."""
    workload = trial.workload
    if workload.scaling == "strong":
        workload = replace(workload, batch_per_worker=trial.batch_global)
    cluster = replace(trial.cluster, hosts=1, workers_per_host=1, network=None)
    return replace(trial, workload=workload, cluster=cluster)


def _against(base_index: int, index: int, groups: Sequence[Runs], *, alone: bool) -> Scaling:
    runs, base = groups[index], groups[base_index]
    if not runs.measured:
        return _unknown("no successful run")
    if any(never_exchanged(record) for record, _ in (*runs.measured, *base.measured)):
        return _unknown("workers never exchanged gradients: this is not distributed training")
    if base_index == index:
        if alone and runs.trial.workers > 1:
            return _unknown("no trial with fewer workers on the same machine and environment to compare with")
        unity = exactly(1.0, "1", len(runs.measured), runs.derived_by)
        return Scaling(efficiency=unity, speedup=unity, base=index, note=None)
    if not base.measured:
        return _unknown(f"its base, {base.trial.label}, has no successful run")
    speedup = ratio_interval(
        runs.by_round("throughput"), base.by_round("throughput"), by=runs.derived_by, least_runs=LEAST_RUNS
    ).ratio
    growth = runs.trial.workers / base.trial.workers
    return Scaling(efficiency=speedup.times(1 / growth), speedup=speedup, base=base_index, note=None)


def _unknown(note: str) -> Scaling:
    return Scaling(efficiency=None, speedup=None, base=None, note=note)


def _comparable(runs: Runs, other: Runs) -> bool:
    """Whether two groups have the same links, machine and environment; a single host fits every network."""
    if other.trial.cluster.hosts > 1 and other.trial.cluster.network != runs.trial.cluster.network:
        return False
    if other.measured:
        return (other.machine, other.fingerprint) == (runs.machine, runs.fingerprint)
    return other.machine in (None, runs.machine)


def _size(trial: Trial, reference: Trial, index: int) -> tuple[int, int, bool, int]:
    return trial.workers, trial.cluster.hosts, trial.cluster.network != reference.cluster.network, index
