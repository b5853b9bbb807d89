"""Fit the model to records, and say what they could not tell. Pure.

All observations of a family are fitted at once: the whole step of each trial (relative error), its phases (relative to
the step), and collectives by themselves (relative error). Least squares within bounds, from several starts, because the
slower of two limits makes kinks. What no observation speaks about stays where a weak prior holds it, and is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from paceline.model.equations.parameters import INDEX, NAMES
from paceline.model.equations.ready import Ready
from paceline.model.equations.step import Floats
from paceline.model.equations.stragglers import ALIKE, Straggling
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration, Hull, ModelFamily
from paceline.model.fitting.digest import digest_of
from paceline.model.fitting.draws import LEVEL, anywhere, draws_of, together
from paceline.model.fitting.observe import Manner, ObservedCollective, Training
from paceline.model.fitting.problem import Evidence, Problem
from paceline.plan.trial import Trial
from paceline.stats.known_by import MODELLED

LEAST_NOISE = 0.005
"""Runs of a real program are never known better than this."""
FOLDS = 12
"""Trials are held out one by one up to so many, and in so many parts beyond: a fit for each of a hundred trials tells
no more about the largest errors than twelve do, and takes minutes."""
FEW_HELD_OUT = 9
"""Fewer held-out trials than this cannot tell a 90 % quantile: the largest error counts, and half as much again."""


def family_of(trial: Trial, machine: str) -> ModelFamily:
    """What a trial has in common with those that one model describes."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    return ModelFamily(
        framework=framework.name,
        strategy=framework.strategy,
        model=workload.name,
        graph=workload.graph,
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
    """The calibration of a family."""
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
        # Only a range is known of it: its interval is that range.
        draws[:, at], low[at], high[at] = anywhere(latest), 0.0, latest
    held_out = _held_out(evidence, straggling, vector)
    last = max(evidence.trainings, key=lambda one: one.trial.workers)
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
        runs=tuple(one.trial.id for one in evidence.trainings),
        evidence=digest_of(evidence),
    )


def _unidentified(jacobian: Floats, evidence: Evidence) -> tuple[str, ...]:
    """What the runs cannot tell, in sentences with the run that would."""
    strength = np.linalg.norm(jacobian, axis=0)
    silent = {name for name, value in zip(NAMES, strength, strict=True) if value < 1e-9}
    batches = {one.conditions.batch for one in evidence.trainings}
    sentences = []
    if len(batches) == 1:
        sentences.append(
            f"only batch {next(iter(batches)):g} was run: we assume that 90 % of the step time grows with "
            "the batch size; run another one"
        )
    most = max(one.conditions.workers for one in evidence.trainings)
    if most < 2 and not evidence.collectives:
        sentences.append(
            "nothing was exchanged: latency and bandwidth are not known; run two workers, or probe the network"
        )
    elif "wire" in silent:
        sentences.append("the network was never saturated: we assume that 95 % of line rate is reached")
    elif "byte_s" in silent:
        sentences.append(
            "a link was the limit in every run: how fast the library is on a faster one is not known, and a step there "
            "may take longer than predicted; run the fastest network that you mean to ask for"
        )
    if most >= 2 and "start" in silent and "contention" in silent:
        sentences.append("the exchange was never hidden: how much of it can be is not known")
    if not any(one.phases for one in evidence.trainings):
        sentences.append("no phases were recorded: forward, backward and update cannot be told apart")
    return tuple(sentences)


def _latest_start(vector: Floats, evidence: Evidence, straggling: Straggling) -> float | None:
    """After which part of the backward pass the exchange begins at the latest, where no run shows it; else None.

    Such a fit ends at the latest moment that still hides everything: any earlier one fits as well.
    """
    exchanging = [one.conditions for one in evidence.trainings if one.conditions.fractions is None]
    terms = [step_terms(vector, one, straggling) for one in exchanging if one.workers > 1 and one.messages]
    if not terms or any(one.exposed_s > LEAST_NOISE * one.step_s for one in terms):
        return None
    return float(vector[INDEX["start"]])


def _begins_before(part: float) -> str:
    return (
        f"the exchange was always hidden: it begins somewhere in the first {part:.0%} of the backward pass, and half "
        "of that is assumed; run more workers, a smaller batch or a slower network"
    )


def _held_out(evidence: Evidence, straggling: Straggling, vector: Floats) -> list[float]:
    """Logarithm of predicted over measured step of each trial, fitted without it, from the whole fit on."""
    trainings = evidence.trainings
    errors: dict[int, float] = {}
    for fold in range(min(FOLDS, len(trainings))):
        held = range(fold, len(trainings), FOLDS)
        others = tuple(one for index, one in enumerate(trainings) if index not in held)
        alone = max((other.conditions.workers for other in others), default=1) < 2
        # The only ones that exchange: nothing could predict them.
        asked = [index for index in held if others and not (alone and trainings[index].conditions.workers > 1)]
        if not asked:
            continue
        less = replace(evidence, trainings=others)
        without, _, _ = Problem(less, straggling).solve(vector)
        if (latest := _latest_start(without, less, straggling)) is not None:
            without[INDEX["start"]] = latest / 2
        for index in asked:
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
    return ordered[min(len(ordered), int(np.ceil((len(ordered) + 1) * LEVEL))) - 1]


def noise_of(trainings: Sequence[Training]) -> float:
    """Standard deviation of the logarithm of a step from run to run, over all trials."""
    deviations = [np.log(one.steps_s) - np.mean(np.log(one.steps_s)) for one in trainings if len(one.steps_s) > 1]
    freedom = sum(len(one) - 1 for one in deviations)
    if not freedom:
        return LEAST_NOISE
    return max(LEAST_NOISE, float(np.sqrt(sum((one**2).sum() for one in deviations) / freedom)))


def _straggling(trainings: Sequence[Training]) -> Straggling:
    """As workers were seen beside each other. Where a framework's step is one piece, that cannot be seen: then as the
    steps of one alone differ, which is what several would wait for.
    """
    known = [(one.trial.ranks > 1, one.straggling) for one in trainings if one.straggling is not None]
    seen = [one for beside, one in known if beside] or [one for _, one in known]
    if not seen:
        return ALIKE
    return Straggling(
        spread=float(np.mean([one.spread for one in seen])),
        persistence=float(np.mean([one.persistence for one in seen])),
        slowest=float(np.mean([one.slowest for one in seen])),
    )


def _hull(trainings: Sequence[Training]) -> Hull:
    asked = [one.conditions for one in trainings]
    links = [one.bandwidth for one in asked if one.bandwidth is not None and one.hosts > 1]
    return Hull(
        workers=(min(one.workers for one in asked), max(one.workers for one in asked)),
        hosts=(min(one.hosts for one in asked), max(one.hosts for one in asked)),
        batch=(min(one.samples for one in asked), max(one.samples for one in asked)),
        bandwidth=(min(links), max(links)) if links else None,
    )


def _remarks(evidence: Evidence, held_out: Sequence[float]) -> tuple[str, ...]:
    """Doubts: ways that are not modelled, anchors that are not monotone, and fits that rest on too little."""
    remarks = [evidence.manner.unknown] if evidence.manner.unknown else []
    if evidence.family.simulated:
        remarks.append("the runs were simulated, and so is what is predicted from them")
    groups: dict[tuple[float, float | None], list[Training]] = {}
    for one in evidence.trainings:
        links = one.conditions.bandwidth if one.conditions.hosts > 1 else None
        groups.setdefault((one.conditions.samples, links), []).append(one)
    for (batch, _), mine in groups.items():
        mine = sorted(mine, key=lambda one: one.conditions.workers)  # noqa: PLW2901
        for few, many in pairwise(mine):
            if many.step_s < few.step_s * 0.97:
                remarks.append(
                    f"batch {batch:g}: {many.conditions.workers} workers step faster than {few.conditions.workers}; "
                    "no model of more work explains that, so distrust one of them"
                )
    if len(held_out) < FEW_HELD_OUT:
        remarks.append(f"only {len(held_out)} trial(s) could be held out: the interval rests on little")
    return tuple(remarks)


def _memory(trainings: Sequence[Training]) -> tuple[float, float] | None:
    """Resident bytes of a worker against its batch."""
    points = [(one.conditions.batch, one.peak_rss_bytes) for one in trainings if one.peak_rss_bytes]
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
    """Observations sorted into families; collectives go with every family of their framework and site."""
    families: dict[str, tuple[ModelFamily, list[Training]]] = {}
    for one in trainings:
        family = family_of(one.trial, machine(one.trial))
        families.setdefault(repr(family), (family, []))[1].append(one)
    return [
        Evidence(
            family=family,
            trainings=tuple(mine),
            manner=manner(mine[0].trial),
            ready=ready(mine[0].trial),
            collectives=_of_family(collectives, mine[0].trial),
        )
        for family, mine in families.values()
    ]


def _of_family(collectives: Sequence[ObservedCollective], trial: Trial) -> tuple[ObservedCollective, ...]:
    """Those of the same library on the same site; with the same knobs, where there are such."""
    near = [one for one in collectives if _same_links(one.trial, trial)]
    same = [one for one in near if one.trial.framework.knobs == trial.framework.knobs]
    return tuple(same or near)


def _same_links(one: Trial, other: Trial) -> bool:
    def links(trial: Trial) -> tuple[str, str, str, Mapping[str, object]]:
        cluster = trial.cluster
        return trial.framework.name, cluster.site, cluster.device, cluster.lasting_options

    return links(one) == links(other)
