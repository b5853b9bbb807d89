"""Decide in which order runs happen, and which are skipped.

Pure: the same arguments give the same plan. The caller passes the ids of recorded runs, so this module does not import
`record`.
Repeats are interleaved over trials (A B A B), so that a drift of the machine does not look like a framework; every
other round runs backwards (A B B A), so that a steady drift inside a round does not either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.plan.expand import Expanded
from paceline.plan.trial import Trial
from paceline.spec.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """One repeat of one trial, to be run."""

    trial: Trial
    repeat: int
    attempt: int
    """0, or more if an earlier attempt failed and is retried."""
    estimate_s: float

    @property
    def run_id(self) -> str:
        return f"{self.trial.id}.r{self.repeat}.a{self.attempt}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Skip:
    """A trial, or one run of it, that is skipped, and the reason."""

    trial: Trial
    reason: str
    repeat: int | None = None
    """The skipped run; None: the whole trial."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Runs in order, skips with their reasons, and the estimated time."""

    study: str
    runs: tuple[PlannedRun, ...]
    skipped: tuple[Skip, ...]
    """Trials that cannot run."""
    done: tuple[Skip, ...]
    """Runs that are recorded already."""

    @property
    def estimate_s(self) -> float:
        return sum(run.estimate_s for run in self.runs)

    @property
    def is_impossible(self) -> bool:
        """Whether every trial of the study is skipped."""
        return bool(self.skipped) and not self.runs and not self.done

    def to_json(self) -> dict[str, object]:
        return {
            "study": self.study,
            "estimate_s": self.estimate_s,
            "runs": [
                {"run": r.run_id, "trial": r.trial.id, "repeat": r.repeat, "estimate_s": r.estimate_s}
                for r in self.runs
            ],
            "skipped": [{"trial": s.trial.id, "reason": s.reason} for s in self.skipped],
            "done": [{"trial": s.trial.id, "repeat": s.repeat, "reason": s.reason} for s in self.done],
            "trials": {t.id: t.to_json() for t in self.trials},
        }

    @property
    def trials(self) -> list[Trial]:
        """Every trial of the plan once, skipped trials last."""
        trials = [run.trial for run in self.runs] + [skip.trial for skip in (*self.done, *self.skipped)]
        return list({trial.id: trial for trial in trials}.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """What a stage after the record proposes to run next; `run.campaign` runs it."""

    study: Study
    reason: str
    """In words, for the user."""
    repeats: Mapping[str, int] = field(default_factory=dict)
    """trial id → total number of repeats wanted; empty: the study's own for all its trials."""


def schedule(
    study: Study,
    expanded: Sequence[Expanded],
    *,
    estimate: Callable[[Trial], float],
    done: Mapping[tuple[str, int], str] | None = None,
    attempts: Mapping[tuple[str, int], int] | None = None,
    retry: Collection[str] = (),
    repeats: Mapping[str, int] | None = None,
    proofs: Sequence[Trial] = (),
    hopeless: Mapping[str, str] | None = None,
) -> Plan:
    """Order the runs of a study: those of the fairness proof, once each, then interleaved rounds.

    Args:
        estimate: the seconds that a run of a trial will take.
        done: (trial id, repeat) → outcome, for runs that are recorded already on this machine.
        attempts: (trial id, repeat) → number of recorded attempts.
        retry: outcomes after which a run is repeated.
        repeats: trial id → total repeats, instead of the study's minimum; other trials are not run.
        proofs: runs of the fairness proof.
        hopeless: trial id → why further repeats would fail as a recorded one did; these repeats are skipped.
    """
    done, attempts, hopeless = done or {}, attempts or {}, hopeless or {}
    skipped = tuple(Skip(trial=e.trial, reason=e.refusal) for e in expanded if e.refusal)
    trials = [e.trial for e in expanded if not e.refusal]
    totals = repeats or {trial.id: study.repeats_of(trial.workload.model).minimum for trial in trials}
    runs, already = [], []
    given_up: dict[str, Skip] = {}
    ordered = [(trial, 0) for trial in proofs]
    for repeat in range(max(totals.values(), default=0)):
        order = trials if repeat % 2 == 0 else trials[::-1]
        ordered += [(trial, repeat) for trial in order if repeat < totals.get(trial.id, 0)]
    for trial, repeat in ordered:
        outcome = done.get((trial.id, repeat))
        if outcome is not None and outcome not in retry:
            already.append(Skip(trial=trial, repeat=repeat, reason=f"recorded: {outcome}"))
            continue
        if outcome is None and trial.id in hopeless:
            given_up[trial.id] = Skip(trial=trial, reason=hopeless[trial.id])
            continue
        attempt = attempts.get((trial.id, repeat), 0)
        runs.append(PlannedRun(trial=trial, repeat=repeat, attempt=attempt, estimate_s=estimate(trial)))
    return Plan(study=study.name, runs=tuple(runs), skipped=(*skipped, *given_up.values()), done=tuple(already))
