"""Which configurations are worth a prediction: sizes, batches, networks and buckets around what was run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.model.fitting.calibration import Calibration
from paceline.model.fitting.fit import family_of
from paceline.plan import Trial
from paceline.plan.expand import Catalog, cannot_host, cannot_train
from paceline.recommend.objective import Bound, Within
from paceline.spec import Network

FARTHER = 4
"""So many times the workers and the batch that were run, and no more unless it is asked for: as far as the model was
shown to be right within a tenth."""
ASK_FOR_MORE = "--within workers<=N"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Configurations of one family."""

    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    """What is not among them, in sentences."""


def grid(calibration: Calibration, members: Sequence[Trial], within: Within, catalog: Catalog) -> Grid:
    """All sizes, batches and networks of a family that the limits allow, those that were run included.

    Args:
        calibration: of the family.
        members: trials that were run, one at least.
        within: limits.
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
                # Whoever gives a number of workers or hosts may have other machines in mind than these.
                elif not (within.workers.given or within.hosts.given) and (why := cannot_host(trial, catalog.site)):
                    too_many[trial.workers] = why
                else:
                    trials[trial.id] = trial
    label = calibration.family.label
    left_out += [f"{label}, {_counted(sorted(set(workers)))}: {why}" for why, workers in refusals.items()]
    if too_many:
        fewest = min(too_many)
        left_out.append(f"{label}, {_counted([fewest])} or more: {too_many[fewest]}; ask all the same: {ASK_FOR_MORE}")
    return Grid(trials=tuple(trials.values()), left_out=tuple(left_out))


def refused(trial: Trial, catalog: Catalog) -> str | None:
    """Why the framework itself rules a trial out."""
    trained = catalog.workload(trial.workload.model, trial.workload.options)
    return cannot_train(trial, trained, catalog.capabilities[trial.framework.name])


def in_family(calibration: Calibration, trial: Trial) -> bool:
    """Whether the calibration speaks of a trial."""
    return family_of(trial, calibration.family.machine) == calibration.family


def nearest(trials: Sequence[Trial], workers: int, batch: int) -> Trial:
    """The one with the most similar size, then batch."""

    def away(trial: Trial) -> tuple[float, float]:
        return (
            abs(math.log(trial.workers / workers)),
            abs(math.log(trial.workload.batch_per_worker / batch)),
        )

    return min(trials, key=away)


def resized(trial: Trial, hosts: int, per_host: int, batch: int, network: Network | None) -> Trial:
    return replace(
        trial,
        workload=replace(trial.workload, batch_per_worker=batch),
        cluster=replace(trial.cluster, hosts=hosts, workers_per_host=per_host, network=network),
    )


def with_knobs(trial: Trial, knobs: Mapping[str, object], catalog: Catalog) -> Trial:
    """The same with other values of some knobs, in the class that these make of its strategy."""
    chosen = {**trial.framework.knobs, **knobs}
    promised = catalog.capabilities[trial.framework.name].class_of(trial.framework.strategy, chosen)
    return replace(trial, framework=replace(trial.framework, knobs=chosen, strategy_class=promised))


def _sizes(members: Sequence[Trial], within: Within) -> Iterator[tuple[int, int]]:
    """(hosts, workers on each): doubling, packed as they were run."""
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
    """Samples a worker: those that were run, those that are asked for, and larger ones where memory says what fits."""
    if members[0].workload.scaling == "strong":
        globals_ = sorted({trial.batch_global for trial in members})
        found = [batch // workers for batch in globals_ if batch % workers == 0]
        return [batch for batch in found if within.batch.allows(batch)]
    run = {trial.workload.batch_per_worker for trial in members}
    found = sorted(run | set(within.batch.among))
    if within.memory is not None and knows_memory(calibration):
        found += [batch for batch in _doubling(2 * max(run), FARTHER * max(run)) if batch not in found]
    return [batch for batch in found if within.batch.allows(batch)]


def knows_memory(calibration: Calibration) -> bool:
    """Whether the runs tell what a larger batch takes."""
    return calibration.memory is not None and calibration.memory[1] > 0


def _networks(members: Sequence[Trial], hosts: int) -> list[Network | None]:
    """Those that were run between hosts; a host alone has none."""
    if hosts == 1:
        return [None]
    return list(dict.fromkeys(trial.cluster.network for trial in members if trial.cluster.hosts > 1))


def _not_asked(calibration: Calibration, members: Sequence[Trial], within: Within) -> Iterator[str]:
    """What nothing is predicted for, whatever the limits."""
    label, most = calibration.family.label, FARTHER * _largest(members)
    if not within.workers.given:
        yield f"{label}, more than {most} workers: too far beyond what was run; ask all the same: {ASK_FOR_MORE}"
    if not _several(members) and not (within.hosts.most <= 1 or within.hosts.among == (1,)):
        yield f"{label}, several hosts: none were run, so nothing is known of the links between them"
    if members[0].workload.scaling == "strong" or within.batch.given:
        return
    if within.memory is None:
        yield f"{label}, batches that were not run: say what fits, --within memory<=SIZE, or which, --within batch=N"
    elif not knows_memory(calibration):
        yield f"{label}, larger batches: the runs do not tell how memory grows with the batch; run another batch size"


def _counted(workers: Sequence[int]) -> str:
    return f"{', '.join(map(str, workers))} worker{'s' if workers != [1] else ''}"
