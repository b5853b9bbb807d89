"""Lists the configurations to predict: sizes, batches and networks around those that were run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.model.fitting.calibration import Calibration
from paceline.model.fitting.fit import family_of
from paceline.plan import Trial
from paceline.plan.expand import Catalog, cannot_host, cannot_train
from paceline.plan.knob_values import KnobValues
from paceline.recommend.objective import Bound, Within
from paceline.spec import Network

FARTHER = 4
"""Up to this many times the workers and batch that were run are predicted unless more is asked for: within this range
the model was shown to be right to 10 %."""
ASK_FOR_MORE = "--within workers<=N"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """The configurations of one family to predict."""

    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    """Sentences on what is not among them, and why."""


def grid(calibration: Calibration, members: Sequence[Trial], within: Within, catalog: Catalog) -> Grid:
    """Returns all sizes, batches and networks of a family that the limits allow, including those that were run.

    Args:
        calibration: the calibration of the family.
        members: the trials that were run, at least one.
        within: the limits.
        catalog: what the site and the framework can do.
    """
    left_out = list(_not_asked(calibration, members, within))
    refusals: dict[str, list[int]] = {}
    too_many: dict[int, str] = {}
    trials: dict[str, Trial] = {}
    for hosts, per_host in _sizes(members, within):
        for batch in _batches(calibration, members, within, hosts * per_host):
            for network in _networks(members, hosts):
                near = nearest(members, hosts * per_host, batch)
                trial = resized(near, hosts, per_host, batch, network)
                if why := refused(trial, catalog):
                    refusals.setdefault(why, []).append(trial.workers)
                # A user who gives a number of workers or hosts may have larger machines than this one.
                elif not (within.workers.given or within.hosts.given) and (why := cannot_host(trial, catalog.site)):
                    too_many[trial.workers] = why
                else:
                    trials[trial.id] = trial
    label = calibration.family.label
    left_out += [f"{label}, {_counted(sorted(set(workers)))}: {why}" for why, workers in refusals.items()]
    if too_many:
        fewest = min(too_many)
        left_out.append(f"{label}, {_counted([fewest])} or more: {too_many[fewest]}; predict anyway: {ASK_FOR_MORE}")
    return Grid(trials=tuple(trials.values()), left_out=tuple(left_out))


def refused(trial: Trial, catalog: Catalog) -> str | None:
    """Says why the framework cannot run a trial; None if it can."""
    trained = catalog.workload(trial.workload.model, trial.workload.options)
    return cannot_train(trial, trained, catalog.capabilities[trial.framework.name])


def in_family(calibration: Calibration, trial: Trial) -> bool:
    """Whether the calibration covers a trial."""
    return family_of(trial, calibration.family.machine) == calibration.family


def nearest(trials: Sequence[Trial], workers: int, batch: int) -> Trial:
    """Returns the trial with the most similar number of workers, then batch."""

    def away(trial: Trial) -> tuple[float, float]:
        return (
            abs(math.log(trial.workers / workers)),
            abs(math.log(trial.workload.batch_per_worker / batch)),
        )

    return min(trials, key=away)


def resized(trial: Trial, hosts: int, per_host: int, batch: int, network: Network | None) -> Trial:
    """Returns the trial at another size."""
    return replace(
        trial,
        workload=replace(trial.workload, batch_per_worker=batch),
        cluster=replace(trial.cluster, hosts=hosts, workers_per_host=per_host, network=network),
    )


def with_knobs(trial: Trial, knobs: KnobValues, catalog: Catalog) -> Trial:
    """Returns the trial with other values of some knobs, and the strategy class that follows from them."""
    chosen = {**trial.framework.knobs, **knobs}
    strategy_class = catalog.capabilities[trial.framework.name].class_of(trial.framework.strategy, chosen)
    return replace(trial, framework=replace(trial.framework, knobs=chosen, strategy_class=strategy_class))


def _sizes(members: Sequence[Trial], within: Within) -> Iterator[tuple[int, int]]:
    """Yields (hosts, workers per host), with the workers doubling and packed on hosts as they were run."""
    counts = set(_doubling(1, _most(within.workers, FARTHER * _largest(members))))
    counts |= {trial.workers for trial in members} | set(within.workers.among)
    counts |= {int(within.workers.most)} if math.isfinite(within.workers.most) else set()
    packed = sorted({trial.cluster.workers_per_host for trial in members})
    for count in sorted(counts):
        if not within.workers.allows(count):
            continue
        hosts = [count // each for each in packed if count % each == 0] if _several(members) else [1]
        yield from ((number, count // number) for number in hosts if within.hosts.allows(number))


def _largest(members: Sequence[Trial]) -> int:
    return max(trial.workers for trial in members)


def _several(members: Sequence[Trial]) -> bool:
    return any(trial.cluster.hosts > 1 for trial in members)


def _most(bound: Bound, usual: int) -> int:
    return int(bound.most) if math.isfinite(bound.most) else max((usual, *bound.among))


def _doubling(first: int, most: int) -> Iterator[int]:
    while first <= most:
        yield first
        first *= 2


def _batches(calibration: Calibration, members: Sequence[Trial], within: Within, workers: int) -> list[int]:
    """Returns the batches per worker: those run, those asked for, and larger ones if a memory limit says what fits."""
    if members[0].workload.scaling == "strong":
        globals_ = sorted({trial.batch_global for trial in members})
        batches = [batch // workers for batch in globals_ if batch % workers == 0]
        return [batch for batch in batches if within.batch.allows(batch)]
    run = {trial.workload.batch_per_worker for trial in members}
    batches = sorted(run | set(within.batch.among))
    if within.memory is not None and knows_memory(calibration):
        batches += [batch for batch in _doubling(2 * max(run), FARTHER * max(run)) if batch not in batches]
    return [batch for batch in batches if within.batch.allows(batch)]


def knows_memory(calibration: Calibration) -> bool:
    """Whether the calibration says how memory grows with the batch."""
    return calibration.memory is not None and calibration.memory[1] > 0


def _networks(members: Sequence[Trial], hosts: int) -> list[Network | None]:
    """Returns the networks that were run between hosts; a single host has none."""
    if hosts == 1:
        return [None]
    return list(dict.fromkeys(trial.cluster.network for trial in members if trial.cluster.hosts > 1))


def _not_asked(calibration: Calibration, members: Sequence[Trial], within: Within) -> Iterator[str]:
    """Yields a sentence for each kind of configuration that is not predicted unless the limits ask for it."""
    label, most = calibration.family.label, FARTHER * _largest(members)
    if not within.workers.given:
        yield f"{label}, more than {most} workers: too far beyond what was run; predict anyway: {ASK_FOR_MORE}"
    if not _several(members) and not (within.hosts.most <= 1 or within.hosts.among == (1,)):
        yield f"{label}, several hosts: only one host was run, so the network between hosts is unknown"
    if members[0].workload.scaling == "strong" or within.batch.given:
        return
    if within.memory is None:
        yield f"{label}, other batch sizes: give a memory limit, --within memory<=SIZE, or a batch, --within batch=N"
    elif not knows_memory(calibration):
        yield f"{label}, larger batches: it is unknown how memory grows with the batch; run another batch size"


def _counted(workers: Sequence[int]) -> str:
    return f"{', '.join(map(str, workers))} worker{'s' if workers != [1] else ''}"
