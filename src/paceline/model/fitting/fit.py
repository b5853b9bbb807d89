"""Fit the model to records, and say what they could not determine. Pure.

All observations of a family are fitted at once: the step time of each trial (relative error), its phases (relative to
the step), and stand-alone collectives (relative error). The fit is bounded least squares from several starts, because
taking the slower of two limits makes the model non-smooth. Parameters that no observation determines stay near a weak
prior and are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.parameters import INDEX, NAMES
from paceline.model.equations.ready import Ready
from paceline.model.equations.stragglers import ALIKE, Straggling
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration, Hull, ModelFamily
from paceline.model.fitting.digest import digest_of
from paceline.model.fitting.draws import anywhere, draws_of, together
from paceline.model.fitting.observe import Manner, ObservedCollective, Training
from paceline.model.fitting.problem import Evidence, Problem
from paceline.plan.trial import Trial
from paceline.stats.estimate import MODELLED_LEVEL
from paceline.stats.known_by import MODELLED

LEAST_NOISE = 0.005
"""Smallest relative noise between runs of a real program."""
FOLDS = 12
"""Largest number of cross-validation folds. More folds take minutes and say no more about the largest errors."""
FEW_HELD_OUT = 9
"""With fewer held-out trials there is no 90 % quantile; 1.5 times the largest error is used."""


def family_of(trial: Trial, machine: str) -> ModelFamily:
    """The model family of a trial."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    return ModelFamily(
        framework=framework.name,
        strategy=framework.strategy,
        model=workload.name,
        graph=workload.identity,
        knobs=dict(framework.knobs),
        threads=cluster.threads_per_worker,
        device=cluster.device,
        site=cluster.site,
        options=cluster.lasting_options,
        input=f"{workload.input}/{workload.loader_workers}",
        machine=machine,
        lock=framework.lock,
        simulated=framework.simulated,
    )


def fit(evidence: Evidence) -> Calibration:
    """Fit the calibration of a family."""
    straggling = _straggling(evidence.trainings)
    problem = Problem(evidence, straggling)
    vector, jacobian, residuals = problem.solve()
    unidentified = _unidentified(jacobian, evidence)
    latest = _latest_start(vector, evidence, straggling)
    if latest is not None:
        vector[INDEX["start"]] = latest / 2
        jacobian[:, INDEX["start"]] = 0.0
        unidentified += (_begins_before(latest),)
    noise = noise_of(evidence.trainings)
    draws = draws_of(problem, vector, jacobian, residuals, noise)
    low, high = together(vector, draws)
    if latest is not None:
        at = INDEX["start"]
        # Only a range of this parameter is known, so its interval is that range.
        draws[:, at], low[at], high[at] = anywhere(latest), 0.0, latest
    held_out = _held_out(evidence, straggling, vector)
    last = max(evidence.trainings, key=lambda training: training.trial.workers)
    return Calibration(
        family=evidence.family,
        by=MODELLED,
        vector=vector,
        low=low,
        high=high,
        draws=draws,
        straggling=straggling,
        hull=_hull(evidence.trainings),
        residual=_conformal(held_out),
        held_out=len(held_out),
        noise=noise,
        unidentified=unidentified,
        remarks=_remarks(evidence, held_out),
        exchange=evidence.manner.exchange,
        sharing=evidence.manner.sharing,
        every=evidence.manner.every,
        passes=last.conditions.passes,
        servers_per_host=evidence.manner.servers_per_host,
        prefetch=evidence.manner.prefetch,
        messages=last.conditions.messages,
        bucketed=last.conditions.fractions is not None,
        ready=evidence.ready,
        memory=_memory(evidence.trainings),
        runs=tuple(training.trial.id for training in evidence.trainings),
        evidence=digest_of(evidence),
    )


def _unidentified(jacobian: Floats, evidence: Evidence) -> tuple[str, ...]:
    """What the runs cannot determine, each with the run that would, as sentences."""
    strength = np.linalg.norm(jacobian, axis=0)
    silent = {name for name, value in zip(NAMES, strength, strict=True) if value < 1e-9}
    batches = {training.conditions.batch for training in evidence.trainings}
    sentences = []
    if len(batches) == 1:
        sentences.append(
            f"only batch {next(iter(batches)):g} was run: we assume that 90 % of the step time grows with "
            "the batch size; run another one"
        )
    most = max(training.conditions.workers for training in evidence.trainings)
    if most < 2 and not evidence.collectives:
        sentences.append(
            "no run exchanged gradients: latency and bandwidth are unknown; run two workers, or probe the network"
        )
    elif "wire" in silent:
        sentences.append("the network was never saturated: we assume that 95 % of line rate is reached")
    elif "byte_s" in silent:
        sentences.append(
            "the network was saturated in every run: on a faster network the library may become the limit, and steps "
            "may take longer than predicted; run the fastest network that you want to predict"
        )
    if most >= 2 and "start" in silent and "contention" in silent:
        sentences.append("communication was never hidden behind compute: how much can be hidden is unknown")
    if not any(training.phases for training in evidence.trainings):
        sentences.append("no phases were recorded: forward, backward and update times cannot be separated")
    return tuple(sentences)


def _latest_start(vector: Floats, evidence: Evidence, straggling: Straggling) -> float | None:
    """Latest start of the exchange, as a fraction of the backward pass, if no run exposes it; otherwise None.

    The fit then ends at the latest start that still hides all communication; any earlier start fits as well.
    """
    exchanging = [training.conditions for training in evidence.trainings if training.conditions.fractions is None]
    terms = [
        step_terms(vector, conditions, straggling)
        for conditions in exchanging
        if conditions.workers > 1 and conditions.messages
    ]
    if not terms or any(term.exposed_s > LEAST_NOISE * term.step_s for term in terms):
        return None
    return float(vector[INDEX["start"]])


def _begins_before(part: float) -> str:
    return (
        f"communication was always hidden: it starts somewhere in the first {part:.0%} of the backward pass, and we "
        "assume half of that; run more workers, a smaller batch or a slower network"
    )


def _held_out(evidence: Evidence, straggling: Straggling, vector: Floats) -> list[float]:
    """Logarithm of predicted over measured step time of each trial, from a fit without that trial.

    Each fit starts from the parameters of the full one.
    """
    trainings = evidence.trainings
    errors: dict[int, float] = {}
    for fold in range(min(FOLDS, len(trainings))):
        held = range(fold, len(trainings), FOLDS)
        rest = tuple(training for index, training in enumerate(trainings) if index not in held)
        alone = max((training.conditions.workers for training in rest), default=1) < 2
        # Trials that exchange cannot be predicted from trials that do not.
        predictable = [index for index in held if rest and not (alone and trainings[index].conditions.workers > 1)]
        if not predictable:
            continue
        reduced = replace(evidence, trainings=rest)
        without, _, _ = Problem(reduced, straggling).solve(vector)
        if (latest := _latest_start(without, reduced, straggling)) is not None:
            without[INDEX["start"]] = latest / 2
        for index in predictable:
            predicted = step_terms(without, trainings[index].conditions, straggling).step_s
            errors[index] = float(np.log(predicted / trainings[index].step_s))
    return [errors[index] for index in sorted(errors)]


def _conformal(errors: Sequence[float]) -> float:
    """Split conformal prediction (Vovk et al. 2005): the ⌈(n + 1)·0.9⌉-th smallest error."""
    if not errors:
        return 0.25
    ordered = sorted(abs(error) for error in errors)
    if len(ordered) < FEW_HELD_OUT:
        return 1.5 * ordered[-1]
    return ordered[min(len(ordered), int(np.ceil((len(ordered) + 1) * MODELLED_LEVEL))) - 1]


def noise_of(trainings: Sequence[Training]) -> float:
    """Standard deviation of the logarithm of step time between runs, pooled over all trials."""
    repeated = [np.log(training.steps_s) for training in trainings if len(training.steps_s) > 1]
    deviations = [logs - np.mean(logs) for logs in repeated]
    freedom = sum(len(logs) - 1 for logs in repeated)
    if not freedom:
        return LEAST_NOISE
    return max(LEAST_NOISE, float(np.sqrt(sum((deviation**2).sum() for deviation in deviations) / freedom)))


def _straggling(trainings: Sequence[Training]) -> Straggling:
    """Straggling among the workers of multi-worker runs.

    It cannot be observed if a framework's step is fused. Then the variation of a single worker's steps is used, because
    that is what several workers would wait for.
    """
    observed = [
        (training.trial.ranks > 1, training.straggling) for training in trainings if training.straggling is not None
    ]
    used = [straggling for several, straggling in observed if several] or [straggling for _, straggling in observed]
    if not used:
        return ALIKE
    return Straggling(
        spread=float(np.mean([straggling.spread for straggling in used])),
        persistence=float(np.mean([straggling.persistence for straggling in used])),
        slowest=float(np.mean([straggling.slowest for straggling in used])),
    )


def _hull(trainings: Sequence[Training]) -> Hull:
    measured = [training.conditions for training in trainings]
    links = [
        conditions.bandwidth for conditions in measured if conditions.bandwidth is not None and conditions.hosts > 1
    ]
    return Hull(
        workers=(
            min(conditions.workers for conditions in measured),
            max(conditions.workers for conditions in measured),
        ),
        hosts=(min(conditions.hosts for conditions in measured), max(conditions.hosts for conditions in measured)),
        batch=(min(conditions.samples for conditions in measured), max(conditions.samples for conditions in measured)),
        bandwidth=(min(links), max(links)) if links else None,
    )


def _remarks(evidence: Evidence, held_out: Sequence[float]) -> tuple[str, ...]:
    """Reasons for doubt: strategies that are not modelled, implausible scaling, and too few held-out trials."""
    remarks = [evidence.manner.unknown] if evidence.manner.unknown else []
    if evidence.family.simulated:
        remarks.append("the runs were simulated, so the predictions are too")
    if any(training.conditions.workers > 1 and not training.conditions.messages for training in evidence.trainings):
        remarks.append(
            "the runs show no exchange between workers: predictions for more workers leave out the exchange of "
            "gradients and do not depend on the network"
        )
    groups: dict[tuple[float, float | None], list[Training]] = {}
    for training in evidence.trainings:
        links = training.conditions.bandwidth if training.conditions.hosts > 1 else None
        groups.setdefault((training.conditions.samples, links), []).append(training)
    for (batch, _), group in groups.items():
        for few, many in pairwise(sorted(group, key=lambda training: training.conditions.workers)):
            if many.step_s < few.step_s * 0.97:
                remarks.append(
                    f"batch {batch:g}: steps are shorter with {many.conditions.workers} workers than with "
                    f"{few.conditions.workers}; the model cannot explain that, so check both measurements"
                )
    if len(held_out) < FEW_HELD_OUT:
        remarks.append(f"only {len(held_out)} trial(s) could be held out: the interval is a rough estimate")
    return tuple(remarks)


def _memory(trainings: Sequence[Training]) -> tuple[float, float] | None:
    """Resident bytes per worker: a fixed part, and a part per sample."""
    points = [(training.conditions.batch, training.peak_rss_bytes) for training in trainings if training.peak_rss_bytes]
    if not points:
        return None
    batch, peak = np.array([point[0] for point in points]), np.array([point[1] for point in points], dtype=float)
    if np.ptp(batch) == 0:
        return float(peak.max()), 0.0
    slope, base = np.polyfit(batch, peak, 1)
    return float(max(0.0, base)), float(max(0.0, slope))


def evidence_of(
    trainings: Sequence[Training],
    collectives: Sequence[ObservedCollective],
    machine: Callable[[Trial], str],
    manner: Callable[[Trial], Manner],
    ready: Callable[[Trial], Ready | None],
) -> list[Evidence]:
    """Group observations by family; collectives belong to every family of their framework and site."""
    families: dict[str, tuple[ModelFamily, list[Training]]] = {}
    for training in trainings:
        family = family_of(training.trial, machine(training.trial))
        families.setdefault(repr(family), (family, []))[1].append(training)
    return [
        Evidence(
            family=family,
            trainings=tuple(members),
            manner=manner(members[0].trial),
            ready=ready(members[0].trial),
            collectives=_of_family(collectives, members[0].trial),
        )
        for family, members in families.values()
    ]


def _of_family(collectives: Sequence[ObservedCollective], trial: Trial) -> tuple[ObservedCollective, ...]:
    """Collectives of the same library on the same site, preferably with the same knobs."""
    near = [collective for collective in collectives if _same_links(collective.trial, trial)]
    same = [collective for collective in near if collective.trial.framework.knobs == trial.framework.knobs]
    return tuple(same or near)


def _same_links(probe: Trial, training: Trial) -> bool:
    def links(trial: Trial) -> tuple[str, str, str, Mapping[str, object]]:
        cluster = trial.cluster
        return trial.framework.name, cluster.site, cluster.device, cluster.lasting_options

    return links(probe) == links(training)
