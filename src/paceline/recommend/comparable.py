"""Which candidates may stand in one list with the present choice, and why the others may not: as `compare` has it."""

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
    """(candidates, why others are left out): the same task, class, kind of time and machine, all shown to be fair."""
    kept: list[Candidate] = []
    reasons: dict[str, int] = {}
    accepted: list[Runs] = []
    verdicts: dict[int, str] = {}
    # The present choice comes first, so that whatever stays can be set beside it.
    for one in sorted(candidates, key=lambda candidate: candidate is not present):
        why = _unlike(one, present, wish)
        if not why:
            # Many candidates are judged by the same runs.
            if id(one.runs) not in verdicts:
                verdicts[id(one.runs)] = _refused(one.runs, accepted, fairness)
                accepted += [] if verdicts[id(one.runs)] else [one.runs]
            why = verdicts[id(one.runs)]
        if why:
            reasons[why] = reasons.get(why, 0) + 1
        else:
            kept.append(one)
    return kept, [f"{count} choice{'s' if count > 1 else ''}: {why}" for why, count in reasons.items()]


def stands_alone(candidate: Candidate, fairness: Fairness) -> bool:
    """Whether it was shown to compute something else, so that nothing may be set beside it."""
    proof = fairness.of(candidate.runs.trial)
    return proof is not None and proof.verdict == NOT_COMPARABLE


def _unlike(one: Candidate, present: Candidate, wish: Wish) -> str:
    """Why a candidate has no place beside the present choice, in words; "" where it has one."""
    mine, now = one.trial, present.trial
    if mine.workload.graph != now.workload.graph:
        return f"{mine.workload.name} is another model than {now.workload.name}"
    if task(mine) != task(now):
        return "another input or device than the present choice has"
    if mine.framework.simulated != now.framework.simulated:
        return "simulated times are never ranked against measured ones"
    promised = mine.framework.strategy_class
    if promised != now.framework.strategy_class and promised not in wish.allow:
        return f"{promised}, and the present choice is {now.framework.strategy_class}; ask: --allow {promised}"
    return ""


def _refused(runs: Runs, accepted: Sequence[Runs], fairness: Fairness) -> str:
    """Why runs may not be ranked with one of these, in words; "" where they may with all."""
    for other in accepted:
        if why := unlike(other, runs):
            return why
        if found := refusal(other, runs, across_machines=True, fairness=fairness):
            return found[1]
    return ""
