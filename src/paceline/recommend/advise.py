"""A recommendation: the survey in words, each choice with its gain, its reason and what it costs to switch. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.explain.finding import Finding
from paceline.plan import Catalog, Trial
from paceline.recommend.candidates import Candidate, Known, set_apart
from paceline.recommend.experiment import experiment
from paceline.recommend.objective import Goal, Wish
from paceline.recommend.recommendation import Advice, Choice, Recommendation
from paceline.recommend.search import PAID, Survey, front, gain, survey, to_try
from paceline.recommend.switching import switching
from paceline.stats.estimate import Estimate


def advise(known: Known, wish: Wish, findings: Mapping[str, Sequence[Finding]] | None = None) -> Advice:
    """What to choose.

    Args:
        known: records, calibrations and proofs of a study.
        wish: goal, prices and limits.
        findings: trial id → what holds it back.

    Raises:
        PacelineError: nothing was measured well enough, or a name in the wish is not there.
    """
    return advice_of(survey(known, wish), known, wish, findings or {})


def advice_of(found: Survey, known: Known, wish: Wish, findings: Mapping[str, Sequence[Finding]]) -> Advice:
    """A survey as advice."""
    present, *choices = choices_of([found.present.trial, *(one.trial for one in found.ranked)], known.catalog)
    ranked = tuple(
        _recommendation(one, choice, present, found, known, wish, tied=tied, because=_because(one, findings))
        for one, choice, tied in zip(found.ranked, choices, found.tied, strict=True)
    )
    trials, obstacles = to_try(found, known)
    return Advice(
        goal=wish.goal.name,
        sentence=_sentence(found, ranked, present, wish),
        ranked=ranked,
        front=front(found.ranked, wish.prices),
        settling=experiment(known.study, trials, known.catalog) if trials else "",
        not_considered=(*found.not_considered, *(f"trying it here: {why}" for why in obstacles)),
    )


def choices_of(trials: Sequence[Trial], catalog: Catalog) -> list[Choice]:
    """Each trial as a choice, with the settings that set it apart from the others of its framework."""
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
    one: Candidate,
    choice: Choice,
    present: Choice,
    found: Survey,
    known: Known,
    wish: Wish,
    *,
    tied: bool,
    because: tuple[Finding, ...],
) -> Recommendation:
    return Recommendation(
        choice=choice,
        value=wish.goal.value(one.throughput, one.hosts, wish.prices),
        unit=wish.goal.unit,
        by=one.by,
        throughput=one.throughput,
        gain=gain(one, found.present, wish.goal),
        tied=tied,
        because=because,
        switching=switching(present, choice),
        trial=one.trial.id if one.was_run else None,
        experiment="" if one.was_run else experiment(known.study, [one.trial], known.catalog),
    )


def _because(one: Candidate, findings: Mapping[str, Sequence[Finding]]) -> tuple[Finding, ...]:
    """What holds it back; of a choice that was not run, what holds the nearest one back that was."""
    return tuple(findings.get(one.runs.trial.id, ()))


def _sentence(found: Survey, ranked: Sequence[Recommendation], present: Choice, wish: Wish) -> str:
    if not ranked:
        return "Nothing that was measured or modelled keeps the limits."
    first, goal = ranked[0], wish.goal
    told = f"{first.choice.label}: {goal.text(first.value)} ({_source(found.ranked[0])}{_beyond(found.ranked[0])})"
    stays = found.ranked[0] is found.present
    parts = [f"Stay with {told}." if stays else f"Choose {told}, {_gained(first.gain, present, goal)}."]
    if alike := sum(one.tied for one in ranked):
        parts.append(f"The first {alike + 1} cannot be told apart." if _at_the_top(ranked) else _some_tied(alike))
    parts += _unsure(found.ranked[0], wish)
    return " ".join(parts)


def _source(candidate: Candidate) -> str:
    of_simulated = candidate.trial.framework.simulated and not candidate.was_run
    return f"{candidate.by} from simulated runs" if of_simulated else candidate.by


def _beyond(candidate: Candidate) -> str:
    return f", {candidate.extrapolated}" if candidate.extrapolated else ""


def _gained(gained: Estimate | None, present: Choice, goal: Goal) -> str:
    assert gained is not None
    ends = "" if gained.ends is None else " ({:.2f}–{:.2f})".format(*gained.ends)
    told = f"{gained.value:.2f}{ends} times as {goal.praise} as {present.label}"
    if gained.ends is None:
        return f"{told}, by too few runs to be sure of any gain"
    return f"{told}, which may be no gain" if gained.contains(1.0) else told


def _at_the_top(ranked: Sequence[Recommendation]) -> bool:
    """Whether those that cannot be told apart from the first follow right behind it."""
    alike = sum(one.tied for one in ranked)
    return all(one.tied for one in ranked[1 : alike + 1])


def _some_tied(alike: int) -> str:
    return f"{alike} other{'s' if alike > 1 else ''} further down cannot be told apart from it."


def _unsure(first: Candidate, wish: Wish) -> list[str]:
    """Limits that the first choice keeps by its value and not by all of its interval; runs of it that failed."""
    within = wish.within
    parts = [
        f"Its interval reaches beyond {within.words[key]}."
        for key, goal in PAID.items()
        if (most := getattr(within, key)) is not None
        and (goal.value(first.throughput, first.hosts, wish.prices).high or 0.0) > most
    ]
    if first.row and first.row.n_failed:
        parts.append(f"{first.row.n_failed} of its {first.row.n_failed + first.row.n_runs} runs failed.")
    return parts
