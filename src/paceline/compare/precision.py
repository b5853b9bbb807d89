"""Adaptive repeats: how many runs each trial should have next, so that its throughput is known well enough.

It only proposes repeats; `run.campaign` runs them and asks again until nothing is proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paceline.compare.runs import Runs, gather
from paceline.plan.trial import Trial
from paceline.record.record import Record
from paceline.spec.study import Repeats
from paceline.stats import FEWEST_WITH_SPREAD, mean_interval, runs_needed

GROWTH = 2
"""A proposal at most doubles the successful runs, because the spread of few runs is too uncertain to justify many."""


def more_repeats(records: Iterable[Record], trials: Sequence[Trial], repeats: Repeats) -> dict[str, int]:
    """Returns trial id → the total number of repeats that it should have next; trials that need no more are left out.

    A failed run counts as a repeat: a trial that fails now and then gets at most the maximum, and a trial that never
    succeeded gets at most the minimum. The records should be those of one machine; if a trial has runs on several, the
    machine of its newest run counts.
    """
    records = list(records)
    newest = {record.trial.id: record.started for record in sorted(records, key=lambda r: r.started)}
    groups: dict[str, Runs] = {}
    for group in gather(records, trials):
        started = [run.started for run in (*(record for record, _ in group.measured), *group.failed)]
        if group.trial.id not in groups or newest[group.trial.id] in started:
            groups[group.trial.id] = group
    wanted = {}
    for trial_id, group in groups.items():
        used = len(group.measured) + len(group.failed)
        total = _total(group, used, repeats)
        if total > used:
            wanted[trial_id] = total
    return wanted


def _total(group: Runs, used: int, repeats: Repeats) -> int:
    if used < repeats.minimum:
        return repeats.minimum
    if repeats.until is None or not group.measured:
        return used
    means = list(group.by_round("throughput").values())
    good = len(means)
    if good < FEWEST_WITH_SPREAD:
        return min(used + 1, repeats.maximum)
    half_width = mean_interval(means, unit="samples/s", least_runs=FEWEST_WITH_SPREAD).relative_half_width
    if half_width is not None and half_width <= repeats.until:
        return used
    wanted = min(runs_needed(means, repeats.until), GROWTH * good)
    return min(used + max(1, wanted - good), repeats.maximum)
