"""Ranks candidates by a goal within limits, and says which cannot be told apart. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import Comparison
from paceline.errors import PacelineError, SpecError, did_you_mean
from paceline.plan import Trial
from paceline.plan.expand import Catalog, cannot_host
from paceline.recommend.candidates import Basis, Candidate, identity, measured, ratio
from paceline.recommend.comparable import one_list, stands_alone
from paceline.recommend.experiment import fitting
from paceline.recommend.forecasts import forecasts
from paceline.recommend.objective import COST, EPOCH_TIME, Goal, Prices, Wish
from paceline.stats import Verdict
from paceline.stats.estimate import Estimate

MOST_TRIALS = 3
"""The most trials of a study that decides which choice is best: it should take only a few runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """All candidates within the limits, ranked."""

    present: Candidate
    """The configuration in use now; it may be outside the limits."""
    ranked: tuple[Candidate, ...]
    """The candidates, best first; () if none meets the limits."""
    tied: tuple[bool, ...]
    """For each candidate whether it cannot be told apart from the first; False for the first itself."""
    not_considered: tuple[str, ...]
    """Sentences on what was not considered, and why."""


def survey(basis: Basis, wish: Wish) -> Survey:
    """Ranks everything that was measured or can be predicted.

    Raises:
        PacelineError: no configuration has enough runs, or the wish names something that was not measured.
    """
    rows, left_out = measured(basis)
    present = present_of(rows, wish, basis)
    _check_names(rows, wish)
    predicted = forecasts(basis, wish, present)
    candidates, apart = one_list([*rows, *predicted.candidates], present, wish, basis.fairness)
    inside, outside = _within(candidates, wish)
    ranked = tuple(sorted(inside, key=lambda candidate: _merit(candidate, wish.goal), reverse=True))
    tied = tuple(
        place > 0 and cannot_be_told_apart(ranked[0], candidate, wish.goal, basis.comparison)
        for place, candidate in enumerate(ranked)
    )
    return Survey(
        present=present, ranked=ranked, tied=tied, not_considered=(*outside, *apart, *left_out, *predicted.left_out)
    )


def present_of(rows: Sequence[Candidate], wish: Wish, basis: Basis) -> Candidate:
    """Returns the measured configuration that others are compared with: as asked for, else the first of the study.

    Raises:
        PacelineError: there is none, or there are several models and none was named.
    """
    if not rows:
        raise PacelineError(
            f"{basis.study.source}: at least two successful runs of a configuration are needed",
            hint="measure it: paceline run STUDY   or more often: paceline run STUDY --again",
        )
    if wish.present is not None:
        chosen = [row for row in rows if row.trial.id.startswith(wish.present)]
        if len({row.trial.id for row in chosen}) != 1:
            ids = [row.trial.id for row in chosen or rows]
            what = "no such trial was measured" if not chosen else "several trial ids begin with it"
            raise SpecError(f"--from {wish.present}: {what}", hint=did_you_mean(wish.present, ids))
        return chosen[0]
    models = dict.fromkeys(row.trial.workload.model for row in rows)
    wanted = wish.within.model or tuple(models)
    if len(wanted) > 1:
        raise PacelineError(
            f"{basis.study.source}: trains {len(models)} models, but a recommendation is for one",
            hint=f"add --within model={next(iter(wanted))}   models: {', '.join(wanted)}",
        )
    _check_name("model", wanted[0], models)
    of_model = [row for row in rows if row.trial.workload.model == wanted[0]]
    return next((row for row in of_model if not stands_alone(row, basis.fairness)), of_model[0])


def _merit(candidate: Candidate, goal: Goal) -> float:
    """Returns a score, larger if better. It needs no prices, because they are the same for all candidates."""
    return candidate.throughput.value * goal.worth(candidate.hosts, 1)


def gain(candidate: Candidate, reference: Candidate, goal: Goal) -> Estimate:
    """Returns the factor by which a candidate is better than a reference."""
    return ratio(candidate, reference).times(goal.worth(candidate.hosts, reference.hosts))


def cannot_be_told_apart(first: Candidate, second: Candidate, goal: Goal, comparison: Comparison) -> bool:
    """Whether two candidates may be equally good: by the comparison's verdict if both were run, else by their ratio."""
    if first.row and second.row:
        keys = {first.row.key, second.row.key}
        verdict = next((pair.verdict for pair in comparison.verdicts if {pair.a, pair.b} == keys), None)
        if verdict is not None:
            return verdict != Verdict.DIFFERENT.words
    return gain(first, second, goal).contains(1.0) is not False


def _check_names(rows: Sequence[Candidate], wish: Wish) -> None:
    """Refuses a name that no measured trial has: it is a typing error."""
    for key, name_of in _NAMES.items():
        names = {name for row in rows if (name := name_of(row.trial)) is not None}
        for word in getattr(wish.within, key):
            _check_name(key, word, names)


def _check_name(key: str, word: str, names: Mapping[str, object] | set[str]) -> None:
    if word not in names:
        raise SpecError(f"--within {key}={word}: no such {key} was measured", hint=did_you_mean(word, names))


def _network(trial: Trial) -> str | None:
    return trial.cluster.network.label if trial.cluster.network else None


_NAMES: Mapping[str, Callable[[Trial], str | None]] = {
    "framework": lambda trial: trial.framework.name,
    "strategy": lambda trial: trial.framework.strategy,
    "model": lambda trial: trial.workload.model,
    "network": _network,
}
"""Limit → the name that it restricts; None if a trial has no such name."""
_COUNTS: Mapping[str, Callable[[Trial], int]] = {
    "workers": lambda trial: trial.workers,
    "hosts": lambda trial: trial.cluster.hosts,
    "batch": lambda trial: trial.workload.batch_per_worker,
    "threads": lambda trial: trial.cluster.threads_per_worker,
}


PAID = {"deadline": EPOCH_TIME, "budget": COST}
"""Limit → the goal whose value it bounds."""


def _within(candidates: Sequence[Candidate], wish: Wish) -> tuple[list[Candidate], list[str]]:
    """Returns the candidates that meet all limits, and a sentence per limit on how many do not meet it."""
    inside = []
    broken: dict[str, int] = {}
    allowed = {identity(trial) for trial in wish.among}
    for candidate in candidates:
        if allowed and candidate.identity not in allowed:
            continue
        limit = outside_of(candidate, wish)
        if limit is None:
            inside.append(candidate)
        else:
            broken[limit] = broken.get(limit, 0) + 1
    return inside, [f"{count} choice{'s' if count > 1 else ''} outside {limit}" for limit, count in broken.items()]


def outside_of(candidate: Candidate, wish: Wish) -> str | None:
    """Returns the first limit that a candidate does not meet, as the user typed it; None if it meets all."""
    within, prices, trial = wish.within, wish.prices, candidate.trial
    for key, count in _COUNTS.items():
        if not getattr(within, key).allows(count(trial)):
            return within.words[key]
    for key, name in _NAMES.items():
        allowed, actual = getattr(within, key), name(trial)
        if allowed and actual is not None and actual not in allowed:
            return within.words[key]
    if within.memory is not None and candidate.memory_bytes is None:
        return f"{within.words['memory']}: the memory per worker is unknown"
    if within.memory is not None and (candidate.memory_bytes or 0.0) > within.memory:
        return within.words["memory"]
    for key, goal in PAID.items():
        most = getattr(within, key)
        if most is not None and goal.value(candidate.throughput, candidate.hosts, prices).value > most:
            return within.words[key]
    return None


def front(ranked: Sequence[Candidate], prices: Prices) -> tuple[int, ...]:
    """Returns the indices of the Pareto front of throughput and cost per sample; () if no price or power is given."""
    if prices.price is None and prices.power is None:
        return ()

    def beaten(candidate: Candidate) -> bool:
        speed, cost = candidate.throughput.value, candidate.hosts / candidate.throughput.value
        return any(
            rival.throughput.value >= speed
            and rival.hosts / rival.throughput.value <= cost
            and (rival.throughput.value, rival.hosts) != (speed, candidate.hosts)
            for rival in ranked
        )

    return tuple(place for place, candidate in enumerate(ranked) if not beaten(candidate))


def to_try(ranking: Survey, basis: Basis) -> tuple[list[Trial], list[str]]:
    """Returns the trials of a small study that tries what is best by prediction only, and why others cannot run."""
    doubtful = [
        candidate
        for place, candidate in enumerate(ranking.ranked)
        if not candidate.was_run and (place == 0 or ranking.tied[place])
    ]
    possible = [candidate.trial for candidate in doubtful if _cannot_try(candidate.trial, basis.catalog) is None]
    reasons = dict.fromkeys(why for candidate in doubtful if (why := _cannot_try(candidate.trial, basis.catalog)))
    return fitting(basis.study, possible, basis.catalog, MOST_TRIALS), list(reasons)


def _cannot_try(trial: Trial, catalog: Catalog) -> str | None:
    return catalog.unavailable.get(trial.framework.name) or cannot_host(trial, catalog.site)
