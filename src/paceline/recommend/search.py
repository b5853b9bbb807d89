"""The best first: candidates ranked by a goal within limits, which cannot be told apart, what to gain. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import Comparison
from paceline.errors import PacelineError, SpecError, did_you_mean
from paceline.plan import Trial
from paceline.plan.expand import Catalog, cannot_host
from paceline.recommend.candidates import Candidate, Known, identity, measured, ratio
from paceline.recommend.comparable import one_list, stands_alone
from paceline.recommend.experiment import fitting
from paceline.recommend.forecasts import forecasts
from paceline.recommend.objective import COST, EPOCH_TIME, Goal, Prices, Wish
from paceline.stats import Verdict
from paceline.stats.estimate import Estimate

MOST_TRIALS = 3
"""Of a study that should settle a doubt: a few runs, not another study."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """All that can be chosen, in order."""

    present: Candidate
    """What is in use now; may lie outside of the limits."""
    ranked: tuple[Candidate, ...]
    """Best first; () where the limits allow nothing."""
    tied: tuple[bool, ...]
    """Whether each cannot be told apart from the first, which is not its own double."""
    not_considered: tuple[str, ...]


def survey(known: Known, wish: Wish) -> Survey:
    """Look at everything that was measured and that the model can say.

    Raises:
        PacelineError: nothing was measured well enough, or a name in the wish is not there.
    """
    rows, left_out = measured(known)
    present = present_of(rows, wish, known)
    _check_names(rows, wish)
    said = forecasts(known, wish, present)
    candidates, apart = one_list([*rows, *said.candidates], present, wish, known.fairness)
    inside, outside = _within(candidates, wish)
    ranked = tuple(sorted(inside, key=lambda one: _merit(one, wish.goal), reverse=True))
    tied = tuple(
        place > 0 and cannot_be_told_apart(ranked[0], one, wish.goal, known.comparison)
        for place, one in enumerate(ranked)
    )
    return Survey(
        present=present, ranked=ranked, tied=tied, not_considered=(*outside, *apart, *left_out, *said.left_out)
    )


def present_of(rows: Sequence[Candidate], wish: Wish, known: Known) -> Candidate:
    """The measured choice that others are set beside: as asked, else the first of the study.

    Raises:
        PacelineError: there is none, or several models and none was named.
    """
    if not rows:
        raise PacelineError(
            f"{known.study.source}: at least two successful runs of a configuration are needed",
            hint="measure it: paceline run STUDY   or more often: paceline run STUDY --again",
        )
    if wish.present is not None:
        chosen = [one for one in rows if one.trial.id.startswith(wish.present)]
        if len({one.trial.id for one in chosen}) != 1:
            ids = [one.trial.id for one in chosen or rows]
            what = "no such trial was measured" if not chosen else "several trials begin so"
            raise SpecError(f"--from {wish.present}: {what}", hint=did_you_mean(wish.present, ids))
        return chosen[0]
    models = dict.fromkeys(one.trial.workload.model for one in rows)
    wanted = wish.within.model or tuple(models)
    if len(wanted) > 1:
        raise PacelineError(
            f"{known.study.source}: trains {len(models)} models, and a choice is for one",
            hint=f"add --within model={next(iter(wanted))}   there are: {', '.join(wanted)}",
        )
    _check_name("model", wanted[0], models)
    mine = [one for one in rows if one.trial.workload.model == wanted[0]]
    return next((one for one in mine if not stands_alone(one, known.fairness)), mine[0])


def _merit(candidate: Candidate, goal: Goal) -> float:
    """Larger is better, whatever the goal: prices are the same for all."""
    return candidate.throughput.value * goal.worth(candidate.hosts, 1)


def gain(one: Candidate, other: Candidate, goal: Goal) -> Estimate:
    """By what factor one is better than the other."""
    return ratio(one, other).times(goal.worth(one.hosts, other.hosts))


def cannot_be_told_apart(first: Candidate, other: Candidate, goal: Goal, comparison: Comparison) -> bool:
    """Two that were measured, by the comparison's verdict; else whether their ratio may be 1."""
    if first.row and other.row:
        keys = {first.row.key, other.row.key}
        verdict = next((pair.verdict for pair in comparison.verdicts if {pair.a, pair.b} == keys), None)
        if verdict is not None:
            return verdict != Verdict.DIFFERENT.words
    return gain(first, other, goal).contains(1.0) is not False


def _check_names(rows: Sequence[Candidate], wish: Wish) -> None:
    """A name that no trial of the study has is a slip of the pen."""
    for key, name_of in _NAMES.items():
        names = {name for one in rows if (name := name_of(one.trial)) is not None}
        for word in getattr(wish.within, key):
            _check_name(key, word, names)


def _check_name(key: str, word: str, names: Mapping[str, object] | set[str]) -> None:
    if word not in names:
        raise SpecError(f"--within {key}={word}: nothing like it was measured", hint=did_you_mean(word, names))


def _network(trial: Trial) -> str | None:
    return trial.cluster.network.label if trial.cluster.network else None


_NAMES: Mapping[str, Callable[[Trial], str | None]] = {
    "framework": lambda trial: trial.framework.name,
    "strategy": lambda trial: trial.framework.strategy,
    "model": lambda trial: trial.workload.model,
    "network": _network,
}
"""Limit → what of a trial it is about; None where the trial has no such thing."""
_COUNTS: Mapping[str, Callable[[Trial], int]] = {
    "workers": lambda trial: trial.workers,
    "hosts": lambda trial: trial.cluster.hosts,
    "batch": lambda trial: trial.workload.batch_per_worker,
    "threads": lambda trial: trial.cluster.threads_per_worker,
}


PAID = {"deadline": EPOCH_TIME, "budget": COST}
"""Limit → the goal of which it is a largest value."""


def _within(candidates: Sequence[Candidate], wish: Wish) -> tuple[list[Candidate], list[str]]:
    """Those that keep all limits, and how many keep which limit not."""
    inside = []
    broken: dict[str, int] = {}
    allowed = {identity(trial) for trial in wish.among}
    for one in candidates:
        if allowed and one.identity not in allowed:
            continue
        limit = outside_of(one, wish)
        if limit is None:
            inside.append(one)
        else:
            broken[limit] = broken.get(limit, 0) + 1
    return inside, [f"{count} choice{'s' if count > 1 else ''} outside of {limit}" for limit, count in broken.items()]


def outside_of(candidate: Candidate, wish: Wish) -> str | None:
    """The first limit that a candidate does not keep, as it was typed, or None."""
    within, prices, trial = wish.within, wish.prices, candidate.trial
    for key, count in _COUNTS.items():
        if not getattr(within, key).allows(count(trial)):
            return within.words[key]
    for key, name in _NAMES.items():
        wanted, mine = getattr(within, key), name(trial)
        if wanted and mine is not None and mine not in wanted:
            return within.words[key]
    if within.memory is not None and candidate.memory_bytes is None:
        return f"{within.words['memory']}, or what a worker takes is not known"
    if within.memory is not None and (candidate.memory_bytes or 0.0) > within.memory:
        return within.words["memory"]
    for key, goal in PAID.items():
        most = getattr(within, key)
        if most is not None and goal.value(candidate.throughput, candidate.hosts, prices).value > most:
            return within.words[key]
    return None


def front(ranked: Sequence[Candidate], prices: Prices) -> tuple[int, ...]:
    """Places that no other beats in both throughput and what a sample costs; () where hosts cost nothing."""
    if prices.price is None and prices.power is None:
        return ()

    def beaten(one: Candidate) -> bool:
        speed, cost = one.throughput.value, one.hosts / one.throughput.value
        return any(
            other.throughput.value >= speed
            and other.hosts / other.throughput.value <= cost
            and (other.throughput.value, other.hosts) != (speed, one.hosts)
            for other in ranked
        )

    return tuple(place for place, one in enumerate(ranked) if not beaten(one))


def to_try(found: Survey, known: Known) -> tuple[list[Trial], list[str]]:
    """(trials that one small study would run, why others cannot be run here): what is best by the model's word only."""
    doubtful = [one for place, one in enumerate(found.ranked) if not one.was_run and (place == 0 or found.tied[place])]
    possible = [one.trial for one in doubtful if _cannot_try(one.trial, known.catalog) is None]
    reasons = dict.fromkeys(why for one in doubtful if (why := _cannot_try(one.trial, known.catalog)))
    return fitting(known.study, possible, known.catalog, MOST_TRIALS), list(reasons)


def _cannot_try(trial: Trial, catalog: Catalog) -> str | None:
    return catalog.unavailable.get(trial.framework.name) or cannot_host(trial, catalog.site)
