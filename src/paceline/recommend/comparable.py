"""Decides which candidates may be ranked with the present choice, by the rules of `compare`."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import NOT_COMPARABLE, Fairness
from paceline.compare.runs import Runs
from paceline.compare.verdicts import refusal, unlike
from paceline.recommend.candidates import Candidate, task
from paceline.recommend.objective import Wish


def one_list(
    candidates: Sequence[Candidate], present: Candidate, wish: Wish, fairness: Fairness
) -> tuple[list[Candidate], list[str]]:
    """Returns the candidates that may be ranked together, and sentences on why the others may not.

    They share the task, the strategy class, measured or simulated time and the machine, and are shown to be comparable.
    """
    kept: list[Candidate] = []
    reasons: dict[str, int] = {}
    accepted: list[Runs] = []
    verdicts: dict[int, str] = {}
    # The present choice comes first, so that every accepted candidate is comparable with it.
    for candidate in sorted(candidates, key=lambda candidate: candidate is not present):
        why = _unlike(candidate, present, wish)
        if not why:
            # Many candidates share the same runs, so each verdict is kept.
            if id(candidate.runs) not in verdicts:
                verdicts[id(candidate.runs)] = _refused(candidate.runs, accepted, fairness)
                accepted += [] if verdicts[id(candidate.runs)] else [candidate.runs]
            why = verdicts[id(candidate.runs)]
        if why:
            reasons[why] = reasons.get(why, 0) + 1
        else:
            kept.append(candidate)
    return kept, [f"{count} choice{'s' if count > 1 else ''}: {why}" for why, count in reasons.items()]


def stands_alone(candidate: Candidate, fairness: Fairness) -> bool:
    """Whether the fairness check showed that it computes something else, so that nothing is comparable with it."""
    proof = fairness.of(candidate.runs.trial)
    return proof is not None and proof.verdict == NOT_COMPARABLE


def _unlike(candidate: Candidate, present: Candidate, wish: Wish) -> str:
    """Says why a candidate is not comparable with the present choice; "" if it is."""
    trial, now = candidate.trial, present.trial
    if trial.workload.graph != now.workload.graph:
        return f"{trial.workload.name} is a different model than {now.workload.name}"
    if task(trial) != task(now):
        return "a different input or device than the present choice"
    if trial.framework.simulated != now.framework.simulated:
        return "simulated times are never ranked against measured ones"
    strategy_class, present_class = trial.framework.strategy_class, now.framework.strategy_class
    if strategy_class != present_class and strategy_class not in wish.allow:
        return f"{strategy_class}, but the present choice is {present_class}; include it: --allow {strategy_class}"
    return ""


def _refused(runs: Runs, accepted: Sequence[Runs], fairness: Fairness) -> str:
    """Says why runs may not be ranked with one of the accepted runs; "" if they may be ranked with all."""
    for ranked in accepted:
        if why := unlike(ranked, runs):
            return why
        if refused := refusal(ranked, runs, across_machines=True, fairness=fairness):
            return refused[1]
    return ""
