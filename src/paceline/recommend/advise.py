"""Turns a survey into advice: each choice with its gain, its reason and the effort of switching. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.explain.finding import Finding
from paceline.plan import Catalog, Trial
from paceline.recommend.candidates import Basis, Candidate, set_apart
from paceline.recommend.experiment import experiment
from paceline.recommend.objective import Goal, Wish
from paceline.recommend.recommendation import Advice, Choice, Recommendation
from paceline.recommend.search import PAID, Survey, front, gain, survey, to_try
from paceline.recommend.switching import switching
from paceline.stats.estimate import Estimate


def advise(basis: Basis, wish: Wish, findings: Mapping[str, Sequence[Finding]] | None = None) -> Advice:
    """Recommends a configuration.

    Args:
        basis: the records, calibrations and fairness proofs of a study.
        wish: the goal, prices and limits.
        findings: trial id → its bottlenecks.

    Raises:
        PacelineError: no configuration has enough runs, or the wish names something that was not measured.
    """
    return advice_of(survey(basis, wish), basis, wish, findings or {})


def advice_of(ranking: Survey, basis: Basis, wish: Wish, findings: Mapping[str, Sequence[Finding]]) -> Advice:
    """Turns a survey into advice."""
    present, *choices = choices_of([ranking.present.trial, *(place.trial for place in ranking.ranked)], basis.catalog)
    ranked = tuple(
        _recommendation(
            candidate, choice, present, ranking, basis, wish, tied=tied, because=_because(candidate, findings)
        )
        for candidate, choice, tied in zip(ranking.ranked, choices, ranking.tied, strict=True)
    )
    trials, obstacles = to_try(ranking, basis)
    return Advice(
        goal=wish.goal.name,
        sentence=_sentence(ranking, ranked, present, wish),
        ranked=ranked,
        front=front(ranking.ranked, wish.prices),
        settling=experiment(basis.study, trials, basis.catalog) if trials else "",
        not_considered=(*ranking.not_considered, *(f"cannot be tried here: {why}" for why in obstacles)),
    )


def choices_of(trials: Sequence[Trial], catalog: Catalog) -> list[Choice]:
    """Returns each trial as a choice, with the settings in which the trials of its framework differ."""
    return [
        Choice(
            framework=trial.framework.name,
            strategy=trial.framework.strategy,
            model=trial.workload.name,
            workers=trial.workers,
            hosts=trial.cluster.hosts,
            batch=trial.workload.batch_per_worker,
            threads=trial.cluster.threads_per_worker,
            network=trial.cluster.network.label if trial.cluster.network else None,
            knobs=knobs,
            strategy_class=trial.framework.strategy_class,
        )
        for trial, knobs in zip(trials, set_apart(trials, catalog), strict=True)
    ]


def _recommendation(
    candidate: Candidate,
    choice: Choice,
    present: Choice,
    ranking: Survey,
    basis: Basis,
    wish: Wish,
    *,
    tied: bool,
    because: tuple[Finding, ...],
) -> Recommendation:
    return Recommendation(
        choice=choice,
        value=wish.goal.value(candidate.throughput, candidate.hosts, wish.prices),
        unit=wish.goal.unit,
        by=candidate.by,
        throughput=candidate.throughput,
        gain=gain(candidate, ranking.present, wish.goal),
        tied=tied,
        because=because,
        switching=switching(present, choice),
        trial=candidate.trial.id if candidate.was_run else None,
        experiment="" if candidate.was_run else experiment(basis.study, [candidate.trial], basis.catalog),
    )


def _because(candidate: Candidate, findings: Mapping[str, Sequence[Finding]]) -> tuple[Finding, ...]:
    """Returns the bottlenecks of a candidate; if it was not run, those of the nearest trial that was."""
    return tuple(findings.get(candidate.runs.trial.id, ()))


def _sentence(ranking: Survey, ranked: Sequence[Recommendation], present: Choice, wish: Wish) -> str:
    if not ranked:
        return "No measured or modelled configuration meets the limits."
    first, best, goal = ranked[0], ranking.ranked[0], wish.goal
    described = f"{first.choice.label}: {goal.text(first.value)} ({_source(best)}{_beyond(best)}{_level(first)})"
    stays = best is ranking.present
    parts = [f"Stay with {described}." if stays else f"Choose {described}, {_gained(first.gain, present, goal)}."]
    if alike := sum(recommendation.tied for recommendation in ranked):
        parts.append(f"The first {alike + 1} cannot be told apart." if _at_the_top(ranked) else _some_tied(alike))
    parts += _unsure(best, wish)
    return " ".join(parts)


def _level(recommendation: Recommendation) -> str:
    """The level of the intervals beside it: tables of the same report show 95 %."""
    return "" if recommendation.value.ends is None else f"; {recommendation.value.level * 100:g} % intervals"


def _source(candidate: Candidate) -> str:
    of_simulated = candidate.trial.framework.simulated and not candidate.was_run
    return f"{candidate.by} from simulated runs" if of_simulated else candidate.by


def _beyond(candidate: Candidate) -> str:
    return f", {candidate.extrapolated}" if candidate.extrapolated else ""


def _gained(gained: Estimate | None, present: Choice, goal: Goal) -> str:
    assert gained is not None
    ends = "" if gained.ends is None else " ({:.2f}–{:.2f})".format(*gained.ends)
    factor = f"{gained.value:.2f}{ends} times as {goal.praise} as {present.label}"
    if gained.ends is None:
        return f"{factor}, with too few runs to be sure of a gain"
    return f"{factor}, which may be no gain" if gained.contains(1.0) else factor


def _at_the_top(ranked: Sequence[Recommendation]) -> bool:
    """Whether the choices that cannot be told apart from the first follow directly after it."""
    alike = sum(recommendation.tied for recommendation in ranked)
    return all(recommendation.tied for recommendation in ranked[1 : alike + 1])


def _some_tied(alike: int) -> str:
    return f"{alike} other choice{'s' if alike > 1 else ''} further down cannot be told apart from it."


def _unsure(first: Candidate, wish: Wish) -> list[str]:
    """Names the limits that the first choice meets by its value but not by its whole interval, and its failed runs."""
    within = wish.within
    parts = [
        f"Its interval extends beyond {within.words[key]}."
        for key, goal in PAID.items()
        if (most := getattr(within, key)) is not None
        and (goal.value(first.throughput, first.hosts, wish.prices).high or 0.0) > most
    ]
    if first.row and first.row.n_failed:
        parts.append(f"{first.row.n_failed} of its {first.row.n_failed + first.row.n_runs} runs failed.")
    return parts
