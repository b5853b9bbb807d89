"""What is lost by following a recommendation that could not know the best configuration. Pure.

In each contest the best that was measured is held out: its records are gone, calibrations are fitted on the rest, and a
recommendation among the configurations of the contest has to find it, or something as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.compare.verdicts import question
from paceline.plan import Trial
from paceline.recommend.candidates import Candidate, Known
from paceline.recommend.comparable import one_list
from paceline.recommend.objective import THROUGHPUT, Wish
from paceline.recommend.search import cannot_be_told_apart, survey

GOOD_ENOUGH = 0.05
"""A choice that loses no more than this against the best is as good as anybody could ask for."""


def regret(chosen_value: float, best_value: float) -> float:
    """By what part longer the chosen one takes than the best, from samples a second of both; 0: it is the best."""
    return best_value / chosen_value - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Regret:
    """One contest."""

    contest: str
    """What was asked, in words."""
    configurations: int
    best: Candidate
    """What was held out, as it was measured."""
    chosen: Candidate
    """What was recommended without it, as it was measured."""
    predicted: bool
    """Whether the model could speak of the best at all."""
    lost: float
    """The regret."""
    told_apart: bool
    """Whether runs tell the chosen one from the best."""

    @property
    def holds(self) -> bool:
        return not self.told_apart or self.lost <= GOOD_ENOUGH

    def to_json(self) -> dict[str, object]:
        return {
            "contest": self.contest,
            "configurations": self.configurations,
            "best": self.best.trial.id,
            "chosen": self.chosen.trial.id,
            "predicted": self.predicted,
            "regret": self.lost,
            "told_apart": self.told_apart,
            "holds": self.holds,
        }


def contests(rows: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    """Questions that measured configurations answer: which is best on a network, and which framework at a size."""
    found: dict[str, list[Candidate]] = {}
    networks: dict[str, dict[str, None]] = {}
    for one in rows:
        links = networks.setdefault(one.trial.workload.graph, {})
        if one.trial.cluster.network is not None:
            links[one.trial.cluster.network.label] = None
    for one in rows:
        link = one.trial.cluster.network
        # A host alone stands for itself on every network.
        labels = [link.label] if link else list(networks[one.trial.workload.graph]) or [""]
        for label in labels:
            found.setdefault(_on_network(one.trial, label), []).append(one)
    alike: dict[tuple[object, ...], list[Candidate]] = {}
    for one in rows:
        alike.setdefault(question(one.trial), []).append(one)
    found |= {_at_size(mine[0].trial): mine for mine in alike.values()}
    return {words: mine for words, mine in found.items() if len(mine) > 1}


def _on_network(trial: Trial, network: str) -> str:
    return f"best for {trial.workload.name}" + (f" on {network}" if network else "")


def _at_size(trial: Trial) -> str:
    workers, batch = trial.workers, trial.workload.batch_per_worker
    link = f" on {trial.cluster.network.label}" if trial.cluster.network else ""
    size = f"{workers} worker(s) on {trial.cluster.hosts} host(s)"
    return f"framework for {trial.workload.name}, {size}, batch {batch}{link}"


def held_out(contest: str, rows: Sequence[Candidate], known: Known, without: Callable[[str], Known]) -> Regret | None:
    """The regret of one contest; None where fewer than two of its configurations may be ranked.

    Args:
        contest: in words.
        rows: its configurations, measured.
        known: all that is recorded.
        without: trial id → all that would be known, had that trial never been run.
    """
    ranked, _ = one_list(rows, rows[0], Wish(), known.fairness)
    if len(ranked) < 2:
        return None
    truth: Mapping[str, Candidate] = {one.identity: one for one in ranked}
    best = max(ranked, key=lambda one: one.throughput.value)
    present = next(one for one in ranked if one is not best)
    wish = Wish(present=present.trial.id, among=tuple(one.trial for one in ranked))
    found = survey(without(best.trial.id), wish)
    chosen = truth[found.ranked[0].identity]
    return Regret(
        contest=contest,
        configurations=len(ranked),
        best=best,
        chosen=chosen,
        predicted=best.identity in {one.identity for one in found.ranked},
        lost=regret(chosen.throughput.value, best.throughput.value),
        told_apart=chosen is not best and not cannot_be_told_apart(best, chosen, THROUGHPUT, known.comparison),
    )
