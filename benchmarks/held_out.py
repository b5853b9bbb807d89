"""Measures what is lost by following a recommendation made without runs of the best configuration. Pure.

In each contest the best measured configuration is held out: its records are removed, calibrations are fitted to the
rest, and a recommendation among the configurations of the contest has to find it, or one as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.compare.verdicts import question
from paceline.plan import Trial
from paceline.recommend.candidates import Basis, Candidate
from paceline.recommend.comparable import one_list
from paceline.recommend.objective import THROUGHPUT, Wish
from paceline.recommend.search import cannot_be_told_apart, survey

GOOD_ENOUGH = 0.05
"""A choice that loses at most this fraction against the best counts as equally good."""


def regret(chosen_value: float, best_value: float) -> float:
    """Returns the relative extra time of the chosen configuration, from samples per second; 0 if it is the best."""
    return best_value / chosen_value - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Regret:
    """The result of one contest."""

    contest: str
    """The question of the contest, in words."""
    configurations: int
    """The number of configurations in the contest."""
    best: Candidate
    """The configuration that was held out, as measured."""
    chosen: Candidate
    """The configuration that was recommended without it, as measured."""
    predicted: bool
    """Whether the model predicted the best configuration at all."""
    lost: float
    """The regret, as a fraction."""
    told_apart: bool
    """Whether the runs show that the chosen and the best configuration differ."""

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
    """Groups measured configurations by question: which is best on a network, and which framework at a size."""
    groups: dict[str, list[Candidate]] = {}
    networks: dict[str, dict[str, None]] = {}
    for row in rows:
        links = networks.setdefault(row.trial.workload.graph, {})
        if row.trial.cluster.network is not None:
            links[row.trial.cluster.network.label] = None
    for row in rows:
        link = row.trial.cluster.network
        # A single host uses no network, so it competes on each of them.
        labels = [link.label] if link else list(networks[row.trial.workload.graph]) or [""]
        for label in labels:
            groups.setdefault(_on_network(row.trial, label), []).append(row)
    alike: dict[tuple[object, ...], list[Candidate]] = {}
    for row in rows:
        alike.setdefault(question(row.trial), []).append(row)
    groups |= {_at_size(group[0].trial): group for group in alike.values()}
    return {words: group for words, group in groups.items() if len(group) > 1}


def _on_network(trial: Trial, network: str) -> str:
    return f"best for {trial.workload.name}" + (f" on {network}" if network else "")


def _at_size(trial: Trial) -> str:
    workers, batch = trial.workers, trial.workload.batch_per_worker
    link = f" on {trial.cluster.network.label}" if trial.cluster.network else ""
    size = f"{workers} worker(s) on {trial.cluster.hosts} host(s)"
    return f"framework for {trial.workload.name}, {size}, batch {batch}{link}"


def held_out(contest: str, rows: Sequence[Candidate], basis: Basis, without: Callable[[str], Basis]) -> Regret | None:
    """Returns the regret of one contest; None if fewer than two of its configurations may be ranked.

    Args:
        contest: the question, in words.
        rows: the measured configurations of the contest.
        basis: the data of all runs.
        without: trial id → the data of all runs except those of that trial.
    """
    ranked, _ = one_list(rows, rows[0], Wish(), basis.fairness)
    if len(ranked) < 2:
        return None
    truth: Mapping[str, Candidate] = {candidate.identity: candidate for candidate in ranked}
    best = max(ranked, key=lambda candidate: candidate.throughput.value)
    present = next(candidate for candidate in ranked if candidate is not best)
    wish = Wish(present=present.trial.id, among=tuple(candidate.trial for candidate in ranked))
    ranking = survey(without(best.trial.id), wish)
    chosen = truth[ranking.ranked[0].identity]
    return Regret(
        contest=contest,
        configurations=len(ranked),
        best=best,
        chosen=chosen,
        predicted=best.identity in {candidate.identity for candidate in ranking.ranked},
        lost=regret(chosen.throughput.value, best.throughput.value),
        told_apart=chosen is not best and not cannot_be_told_apart(best, chosen, THROUGHPUT, basis.comparison),
    )
