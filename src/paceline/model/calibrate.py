"""Fit the model to records, and say what they could not tell. Pure.

All observations of a family are fitted at once: the whole step of each trial (relative error), its phases (relative to
the step), and collectives by themselves (relative error). Least squares within bounds, from several starts, because the
slower of two limits makes kinks. What no observation speaks about stays where a weak prior holds it, and is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares, lsq_linear

from paceline.model.calibration import FITTED, Calibration, Family, Hull
from paceline.model.observe import DILATION, Collective, Manner, Training
from paceline.model.parameters import DEFAULT, HIGH, INDEX, NAMES, UNKNOWNS
from paceline.model.ready import Ready
from paceline.model.step import Floats
from paceline.model.stragglers import ALIKE, Straggling
from paceline.model.terms import collective_s, step_terms
from paceline.plan.trial import Trial

LEVEL = 0.90
DRAWS = 200
PRIOR = 1e-4
"""Weight of what is assumed against what was measured."""
DERIVED_WEIGHT = 0.3
"""Of phases that are differences of separate programs: they are noisier than the step itself."""
LEAST_NOISE = 0.005
"""Runs of a real program are never known better than this."""
UNSURE = 3.0
"""Parameters that nothing speaks about may be off by so many times what is usual of them."""
LEAST_ERROR = 1e-4
"""Of an observation: what is met exactly is still a measurement."""
HALVINGS = 12
MOST_EVALUATIONS = 200
"""Of a search: one that has not ended by then creeps along a valley in which nothing changes any more."""
PHASES = ("data", "forward", "backward", "communication", "update", "overhead")
FEW_HELD_OUT = 9
"""Fewer held-out trials than this cannot tell a 90 % quantile: the largest error counts, and half as much again."""


def family_of(trial: Trial, machine: str) -> Family:
    """What a trial has in common with those that one model describes."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    return Family(
        framework=framework.name, strategy=framework.strategy, model=workload.name, graph=workload.graph,
        knobs=dict(framework.knobs), threads=cluster.threads_per_worker, device=cluster.device, site=cluster.site,
        options={name: value for name, value in cluster.options.items() if name != DILATION},
        input=f"{workload.input}/{workload.loader_workers}", machine=machine, lock=framework.lock,
        simulated=framework.simulated,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """All that is known of one family."""

    family: Family
    trainings: tuple[Training, ...]
    collectives: tuple[Collective, ...] = ()
    """Of the same library on the same site."""
    ready: Ready | None = None
    manner: Manner = field(default_factory=Manner)


def fit(evidence: Evidence) -> Calibration:
    """The calibration of a family."""
    straggling = _pooled([one for one in evidence.trainings if one.trial.ranks > 1] or evidence.trainings)
    problem = _Problem(evidence, straggling)
    vector, jacobian, residuals = problem.solve()
    unidentified = _unidentified(jacobian, evidence)
    latest = _latest_start(vector, evidence, straggling)
    if latest is not None:
        vector[INDEX["start"]] = latest / 2
        jacobian[:, INDEX["start"]] = 0.0
        unidentified += (_begins_before(latest),)
    noise = noise_of(evidence.trainings)
    draws = _draws(problem, vector, jacobian, residuals, noise)
    if latest is not None:
        draws[:, INDEX["start"]] = _anywhere(latest)
    low, high = _together(vector, draws)
    held_out = _held_out(evidence, straggling, vector)
    last = max(evidence.trainings, key=lambda one: one.trial.workers)
    return Calibration(
        family=evidence.family, by=FITTED, vector=vector, low=low, high=high,
        draws=draws, straggling=straggling, hull=_hull(evidence.trainings), residual=_conformal(held_out),
        held_out=len(held_out), noise=noise, unidentified=unidentified,
        remarks=_remarks(evidence.trainings, held_out), exchange=evidence.manner.exchange,
        servers_per_host=evidence.manner.servers_per_host, prefetch=evidence.manner.prefetch,
        messages=last.conditions.messages, bucketed=last.conditions.fractions is not None, ready=evidence.ready,
        memory=_memory(evidence.trainings), runs=tuple(one.trial.id for one in evidence.trainings),
    )  # fmt: skip


class _Problem:
    """Residuals of a family as a function of the parameters."""

    def __init__(self, evidence: Evidence, straggling: Straggling) -> None:
        self._evidence = evidence
        self._straggling = straggling
        step = float(np.median([one.step_s for one in evidence.trainings]))
        batch = float(np.median([one.conditions.batch for one in evidence.trainings]))
        usual = {"s": step, "s/B": 1e-9, "1": 1.0}
        self.scale = np.array(
            [
                step / batch if name.endswith("_per_sample_s") else 1e-4 if name == "alpha_s" else usual[unknown.unit]
                for name, unknown in zip(NAMES, UNKNOWNS, strict=True)
            ]
        )
        self.high = HIGH / self.scale + 1e-12
        """Bounds of the scaled parameters."""
        self.unsure = np.array(
            [
                UNSURE if unknown.unsure is None else unknown.unsure / scale
                for unknown, scale in zip(UNKNOWNS, self.scale, strict=True)
            ]
        )
        """How far each may be from what is assumed, scaled."""
        self._first = self._guess(step)

    def residuals(self, scaled: Floats) -> Floats:
        return np.concatenate([self.of_data(scaled * self.scale), PRIOR * (scaled - self._first / self.scale)])

    def of_data(self, vector: Floats) -> Floats:
        rows: list[float] = []
        for one in self._evidence.trainings:
            terms = step_terms(vector, one.conditions, self._straggling)
            rows.append(float(np.log(max(terms.step_s, 1e-12) / one.step_s)))
            weight = DERIVED_WEIGHT if one.derived else 1.0
            found = terms.phases()
            rows += [weight * (found[name] - one.phases[name]) / one.step_s for name in PHASES if name in one.phases]
        for two in self._evidence.collectives:
            taken = np.maximum(collective_s(vector, two.conditions, two.sizes, two.operation), 1e-12)
            rows += (np.log(taken / two.seconds) / np.sqrt(len(two.sizes))).tolist()
        return np.array(rows)

    def common(self) -> Floats:
        """How a run that takes longer by a part moves the residuals: a column a trial, one more a collective."""
        columns: list[list[float]] = []
        for one in self._evidence.trainings:
            weight = DERIVED_WEIGHT if one.derived else 1.0
            phases = [weight * one.phases[name] / one.step_s for name in PHASES if name in one.phases]
            columns.append([1.0, *phases])
        columns += [[1 / np.sqrt(len(two.sizes))] * len(two.sizes) for two in self._evidence.collectives]
        found = np.zeros((sum(len(column) for column in columns), len(columns)))
        row = 0
        for index, column in enumerate(columns):
            found[row : row + len(column), index] = column
            row += len(column)
        return found

    def noise_of_means(self, noise: float) -> Floats:
        """Of each column of `common`, if runs differ by so much."""
        trained = [noise / np.sqrt(len(one.steps_s)) for one in self._evidence.trainings]
        probed = [max(noise, two.noise) / np.sqrt(two.runs) for two in self._evidence.collectives]
        return np.array([*trained, *probed])

    def solve(self, near: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """(parameters, derivatives of the data's residuals by the scaled parameters, these residuals).

        Args:
            near: where to begin; by default in several places, and the best end counts.
        """
        ends = [
            least_squares(
                self.residuals, begin / self.scale, bounds=(np.zeros(len(NAMES)), self.high), x_scale=1.0,
                max_nfev=MOST_EVALUATIONS,
            )
            for begin in (self._starts() if near is None else [near])
        ]  # fmt: skip
        best = min(ends, key=lambda end: float(end.cost))
        rows = len(best.fun) - len(NAMES)
        return best.x * self.scale, np.asarray(best.jac)[:rows], best.fun[:rows]

    def _starts(self) -> list[Floats]:
        starts = []
        for begin, byte in ((1.0, 1e-9), (0.3, 1e-9), (1.0, 1e-8), (0.3, 1e-10)):
            first = self._first.copy()
            first[INDEX["start"]], first[INDEX["byte_s"]] = begin, byte
            starts.append(first)
        return starts

    def _guess(self, step: float) -> Floats:
        """A start from the phases of the smallest configuration, where they are known."""
        one = min(self._evidence.trainings, key=lambda training: training.conditions.workers)
        phases = one.phases or {"forward": step / 3, "backward": step * 2 / 3}
        first = DEFAULT.copy()
        for name in ("forward", "backward"):
            first[INDEX[f"{name}_s"]] = 0.1 * phases.get(name, 0.0)
            first[INDEX[f"{name}_per_sample_s"]] = 0.9 * phases.get(name, 0.0) / one.conditions.batch
        first[INDEX["update_s"]], first[INDEX["overhead_s"]] = phases.get("update", 0.0), phases.get("overhead", 0.0)
        first[INDEX["input_s"]] = phases.get("data", 0.0)
        first[INDEX["alpha_s"]], first[INDEX["byte_s"]] = 1e-4, 1e-9
        bounded: Floats = np.minimum(first, HIGH)
        return bounded


def _draws(problem: _Problem, vector: Floats, jacobian: Floats, residuals: Floats, noise: float) -> Floats:
    """Parameters as likely as the fitted ones.

    Randomize, then optimize (Bardsley et al. 2014): observations are moved by as much as they may be off, assumptions
    by as much as they are unsure, and the linearised fit is made again within its bounds. Observations are off in two
    ways: each run as a whole, by what runs were seen to differ, and each one by what the fit leaves over.
    """
    freedom = max(1, len(residuals) - int(np.linalg.matrix_rank(jacobian)))
    own = max(float(np.sqrt((residuals**2).sum() / freedom)), LEAST_ERROR)
    generator = np.random.default_rng(0)
    # Student's t: how large the errors are is itself known from few of them only.
    scale = np.sqrt(freedom / generator.chisquare(freedom, size=(DRAWS, 1)))
    shared = problem.common() * problem.noise_of_means(noise)
    moved = scale * (
        own * generator.normal(size=(DRAWS, len(residuals)))
        + generator.normal(size=(DRAWS, shared.shape[1])) @ shared.T
    )
    assumed = generator.normal(size=(DRAWS, len(NAMES)))
    scaled = vector / problem.scale
    orthogonal, triangle = np.linalg.qr(np.vstack([jacobian / own, np.diag(1 / problem.unsure)]))
    wanted = np.hstack([moved / own, assumed]) @ orthogonal
    bounds = (np.minimum(-scaled, -1e-15), np.maximum(problem.high - scaled, 1e-15))
    moves = [lsq_linear(triangle, one, bounds=bounds, method="bvls").x for one in wanted]
    assumed_only = np.linalg.norm(jacobian, axis=0) * problem.unsure < own
    draws = [_not_contradicted(problem, scaled, move, assumed_only, own) for move in moves]
    return np.array(draws) * problem.scale


def _together(vector: Floats, draws: Floats) -> tuple[Floats, Floats]:
    """Intervals that hold all parameters at once in nine of ten calibrations.

    Each by itself would miss one in ten, so that hardly any calibration had all of them inside.
    """
    tail = (1 - LEVEL) / 2 * 100
    low, high = np.percentile(draws, [tail, 100 - tail], axis=0)
    down, up = np.maximum(vector - low, 0.0), np.maximum(high - vector, 0.0)
    off = draws - vector
    width = np.where(off > 0, up, down)
    outside = np.divide(np.abs(off), width, out=np.zeros_like(off), where=width > 0).max(axis=1)
    wider = max(1.0, float(np.quantile(outside, LEVEL)))
    bounded = np.maximum(vector - wider * down, 0.0), np.minimum(vector + wider * up, HIGH)
    # What all draws agree on needs no widening: a range of which only the ends are known.
    return np.maximum(bounded[0], draws.min(axis=0)), np.minimum(bounded[1], draws.max(axis=0))


def _not_contradicted(
    problem: _Problem, scaled: Floats, move: Floats, assumed: npt.NDArray[np.bool_], own: float
) -> Floats:
    """A draw whose assumed parameters the observations allow, kinks of the model included; else half as far off."""
    known = np.where(assumed, 0.0, move)
    without = np.linalg.norm(problem.of_data((scaled + known) * problem.scale))
    most = np.hypot(without, own)
    for _ in range(HALVINGS):
        found: Floats = np.clip(scaled + move, 0.0, problem.high)
        if np.linalg.norm(problem.of_data(found * problem.scale)) <= most:
            return found
        move = np.where(assumed, move / 2, move)
    return np.clip(scaled + known, 0.0, problem.high)


def _unidentified(jacobian: Floats, evidence: Evidence) -> tuple[str, ...]:
    """What the runs cannot tell, in sentences with the run that would."""
    strength = np.linalg.norm(jacobian, axis=0)
    silent = {name for name, value in zip(NAMES, strength, strict=True) if value < 1e-9}
    batches = {one.conditions.batch for one in evidence.trainings}
    sentences = []
    if len(batches) == 1:
        sentences.append(
            f"only batch {next(iter(batches)):g} was run: what of a step grows with the batch is assumed to be nine "
            "tenths; run another batch size"
        )
    most = max(one.conditions.workers for one in evidence.trainings)
    if most < 2 and not evidence.collectives:
        sentences.append(
            "nothing was exchanged: latency and bandwidth are not known; run two workers, or probe the network"
        )
    elif "wire" in silent:
        sentences.append("no link was the limit: how much of a link's bandwidth is reached is assumed to be 95 %")
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


def _anywhere(high: float) -> Floats:
    """Draws from 0 to `high`, denser at both ends: where only a range is known, an interval should hold all of it."""
    found: Floats = high * np.sin(np.pi / 2 * np.random.default_rng(1).uniform(size=DRAWS)) ** 2
    return found


def _begins_before(part: float) -> str:
    return (
        f"the exchange was always hidden: it begins somewhere in the first {part:.0%} of the backward pass, and half "
        "of that is assumed; run more workers, a smaller batch or a slower network"
    )


def _held_out(evidence: Evidence, straggling: Straggling, vector: Floats) -> list[float]:
    """Logarithm of predicted over measured step of each trial, fitted without it, from the whole fit on."""
    errors = []
    for index, one in enumerate(evidence.trainings):
        others = (*evidence.trainings[:index], *evidence.trainings[index + 1 :])
        if not others or (one.conditions.workers > 1 and max(other.conditions.workers for other in others) < 2):
            continue  # the only one that exchanges: nothing could predict it
        less = replace(evidence, trainings=others)
        without, _, _ = _Problem(less, straggling).solve(vector)
        if (latest := _latest_start(without, less, straggling)) is not None:
            without[INDEX["start"]] = latest / 2
        errors.append(float(np.log(step_terms(without, one.conditions, straggling).step_s / one.step_s)))
    return errors


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


def _pooled(trainings: Sequence[Training]) -> Straggling:
    if not trainings:
        return ALIKE
    return Straggling(
        spread=float(np.mean([one.straggling.spread for one in trainings])),
        persistence=float(np.mean([one.straggling.persistence for one in trainings])),
        slowest=float(np.mean([one.straggling.slowest for one in trainings])),
    )


def _hull(trainings: Sequence[Training]) -> Hull:
    asked = [one.conditions for one in trainings]
    links = [one.bandwidth for one in asked if one.bandwidth is not None and one.hosts > 1]
    return Hull(
        workers=(min(one.workers for one in asked), max(one.workers for one in asked)),
        hosts=(min(one.hosts for one in asked), max(one.hosts for one in asked)),
        batch=(min(one.batch for one in asked), max(one.batch for one in asked)),
        bandwidth=(min(links), max(links)) if links else None,
    )


def _remarks(trainings: Sequence[Training], held_out: Sequence[float]) -> tuple[str, ...]:
    """Doubts: anchors that are not monotone, and fits that rest on too little."""
    remarks = []
    groups: dict[tuple[float, float | None], list[Training]] = {}
    for one in trainings:
        links = one.conditions.bandwidth if one.conditions.hosts > 1 else None
        groups.setdefault((one.conditions.batch, links), []).append(one)
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
    collectives: Sequence[Collective],
    machine: Callable[[Trial], str],
    manner: Callable[[Trial], Manner],
    ready: Callable[[Trial], Ready | None],
) -> list[Evidence]:
    """Observations sorted into families; collectives go with every family of their framework and site."""
    families: dict[str, tuple[Family, list[Training]]] = {}
    for one in trainings:
        family = family_of(one.trial, machine(one.trial))
        families.setdefault(repr(family), (family, []))[1].append(one)
    return [
        Evidence(
            family=family, trainings=tuple(mine), manner=manner(mine[0].trial), ready=ready(mine[0].trial),
            collectives=_of_family(collectives, mine[0].trial),
        )
        for family, mine in families.values()
    ]  # fmt: skip


def _of_family(collectives: Sequence[Collective], trial: Trial) -> tuple[Collective, ...]:
    """Those of the same library on the same site; with the same knobs, where there are such."""
    near = [one for one in collectives if _same_links(one.trial, trial)]
    same = [one for one in near if one.trial.framework.knobs == trial.framework.knobs]
    return tuple(same or near)


def _same_links(one: Trial, other: Trial) -> bool:
    def links(trial: Trial) -> tuple[str, str, str, Mapping[str, object]]:
        options = {name: value for name, value in trial.cluster.options.items() if name != DILATION}
        return trial.framework.name, trial.cluster.site, trial.cluster.device, options

    return links(one) == links(other)
