"""Decides which trial is faster, for every pair that answers the same question, or says why it is not ranked.

Two trials answer the same question if they have the same graph, batch, input, workers, hosts, network, device, site and
kind of scaling. They may differ in framework, strategy, knobs, threads and versions. Different strategy classes, and
simulated and measured times, are never ranked together, so they form no pairs. Pairs of different machines, or of
frameworks without a fairness proof, are formed but refused with a reason.

If a question has up to ALL_PAIRS answers, all pairs are compared. If it has more, only the fastest is compared with
each of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Final, Literal

from paceline.compare.fairness import NO_PROOF, NOT_COMPARABLE, Fairness
from paceline.compare.gaps import Factor
from paceline.compare.runs import Runs
from paceline.plan.trial import Trial
from paceline.stats import LEAST_RUNS, equivalent, holm, ratio_interval, shared_spread, verdict
from paceline.stats.estimate import Estimate, finite
from paceline.stats.verdict import VerdictWords

ALL_PAIRS = 12
"""The most answers to one question of which all pairs are compared. They give 66 pairs, which a reader can still look
through; of a larger sweep only the best configuration matters."""

RefusalWord = Literal["no proof", "not comparable", "different machines"]
"""Why two rows are not ranked."""
DIFFERENT_MACHINES: Final = "different machines"
"""The rows were recorded on two machines, or in two states of one environment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairVerdict:
    """The verdict on two rows."""

    a: str
    """The key of the faster row; of the first in the table if they are not ranked."""
    b: str
    """The key of the other row."""
    ratio: Estimate | None
    """The throughput of a ÷ that of b; None if they must not be ranked."""
    p: float | None
    """The p value of "no difference", of this pair alone."""
    verdict: VerdictWords | RefusalWord
    p_adjusted: float | None = None
    """The p value after Holm's correction over all pairs of the table; the verdict is based on it."""
    margin: float
    """The relative difference that counts as equal."""
    n_runs: int
    """The runs of the row that has fewer, or the rounds if the runs were paired."""
    paired: bool = False
    """Whether runs of the same round were compared with each other."""
    note: str | None = None
    """What the reader must know besides the number."""
    factor: Factor | None = None
    """The phase that causes most of a difference; None if there is no difference, or the phases are unknown."""

    def to_json(self) -> dict[str, object]:
        ratio = self.ratio
        return {
            "a": self.a,
            "b": self.b,
            "ratio": finite(ratio.value) if ratio else None,
            "low": finite(ratio.low) if ratio else None,
            "high": finite(ratio.high) if ratio else None,
            "level": ratio.level if ratio else None,
            "p": self.p,
            "verdict": self.verdict,
            "p_adjusted": self.p_adjusted,
            "margin": self.margin,
            "n_runs": self.n_runs,
            "paired": self.paired,
            "note": self.note,
            "factor": self.factor.to_json() if self.factor else None,
        }


def judge(
    groups: Sequence[Runs],
    keys: Sequence[str],
    *,
    margin: float,
    across_machines: bool = False,
    fairness: Fairness | None = None,
) -> list[PairVerdict]:
    """Returns the verdicts on the pairs that answer the same question.

    Holm's correction counts all pairs with a p value, and also those that were not formed, because the fastest row was
    chosen by the same runs.
    """
    pairs: list[PairVerdict] = []
    equal_p: list[float] = []
    tested: list[int] = []
    throughputs = [group.by_round("throughput") for group in groups]
    alike, unlisted = _pairs(groups, throughputs, across_machines=across_machines)
    refusals = {
        (i, j): refusal(groups[i], groups[j], across_machines=across_machines, fairness=fairness or Fairness())
        for i, j in alike
    }
    # Refused pairs are left out: their differences say nothing about the spread between runs.
    spread = shared_spread(
        [(throughputs[i], throughputs[j]) for (i, j), refused in refusals.items() if refused is None]
    )
    for (i, j), refused in refusals.items():
        a, b = groups[i], groups[j]
        if refused is not None:
            pairs.append(_refused_pair(keys[i], keys[j], *refused, margin=margin, n_runs=_fewer(a, b)))
            continue
        test = ratio_interval(throughputs[i], throughputs[j], by=a.derived_by, spread=spread, least_runs=LEAST_RUNS)
        if test.ratio.value < 1:
            i, j, a, b = j, i, b, a  # noqa: PLW2901 - the faster row is a, in the rounds that count
            test = ratio_interval(throughputs[i], throughputs[j], by=a.derived_by, spread=spread, least_runs=LEAST_RUNS)
        if test.spread_known:
            tested.append(len(pairs))
            equal_p.append(equivalent(throughputs[i], throughputs[j], margin, spread))
        pairs.append(
            PairVerdict(
                a=keys[i],
                b=keys[j],
                ratio=test.ratio,
                p=test.p,
                verdict=verdict(1.0, 1.0).words,
                p_adjusted=test.p,
                margin=margin,
                n_runs=test.n_pairs or _fewer(a, b),
                paired=test.n_pairs > 0,
                note=_note(a, b, spread_known=test.spread_known),
            )
        )
    adjusted = holm([pairs[k].p or 0.0 for k in tested], further=unlisted)
    for k, different_p, same_p in zip(tested, adjusted, holm(equal_p, further=unlisted), strict=True):
        pairs[k] = replace(pairs[k], p_adjusted=different_p, verdict=verdict(different_p, same_p).words)
    return pairs


def _pairs(
    groups: Sequence[Runs], throughputs: Sequence[Mapping[int, float]], *, across_machines: bool
) -> tuple[list[tuple[int, int]], int]:
    """Returns the pairs of groups to compare, in table order, and the number of pairs that are not formed."""
    answers: dict[tuple[object, ...], list[int]] = {}
    for index, group in enumerate(groups):
        if group.measured:
            answers.setdefault(question(group.trial), []).append(index)
    pairs, unlisted = [], 0
    for rows in answers.values():
        if len(rows) <= ALL_PAIRS:
            pairs += list(combinations(rows, 2))
            continue
        # The fastest of each machine is taken, because pairs of two machines would be refused.
        machines = {None if across_machines else groups[row].machine: row for row in rows}
        for machine in machines:
            here = [row for row in rows if across_machines or groups[row].machine == machine]
            best = max(here, key=lambda row: fmean(throughputs[row].values()))
            pairs += [(min(best, row), max(best, row)) for row in here if row != best]
            unlisted += (len(here) - 1) * (len(here) - 2) // 2
    return sorted(pairs), unlisted


def question(trial: Trial) -> tuple[object, ...]:
    """Returns what two trials must have in common to be ranked."""
    workload, cluster = trial.workload, trial.cluster
    return (
        workload.graph,
        workload.batch_per_worker,
        workload.scaling,
        workload.input,
        trial.workers,
        cluster.hosts,
        cluster.network,
        cluster.device,
        cluster.site,
        tuple(sorted(cluster.options.items())),
        trial.framework.strategy_class,
        trial.framework.simulated,
    )


def unlike(a: Runs, b: Runs) -> str | None:
    """Says in which machines or environments two groups differ; None if they are alike."""
    if a.machine != b.machine:
        return f"recorded on two machines, {a.machine} and {b.machine}"
    framework, other = a.trial.framework, b.trial.framework
    # Two frameworks always have two environments, but one lock should always give the same packages.
    if (framework.environment, framework.lock) == (other.environment, other.lock) and a.fingerprint != b.fingerprint:
        return f"recorded in two states of the environment {framework.environment}"
    return None


def refusal(a: Runs, b: Runs, *, across_machines: bool, fairness: Fairness) -> tuple[RefusalWord, str] | None:
    """Returns why two groups must not be ranked, as a word and a sentence; None if they may be."""
    first, second = a.trial.framework.name, b.trial.framework.name
    if not across_machines and (why := unlike(a, b)):
        return DIFFERENT_MACHINES, f"{why}; to rank them anyway: --across-machines"
    proofs = [fairness.of(a.trial), fairness.of(b.trial)]
    for proof in proofs:
        if proof is not None and proof.verdict == NOT_COMPARABLE:
            return NOT_COMPARABLE, f"{proof.name}: {'; '.join(proof.reasons)}"
    if first == second:
        return None
    for name, proof in zip((first, second), proofs, strict=True):
        if proof is None:
            why = f"nothing can show that {first} and {second} compute the same"
            return NO_PROOF, f"{why}: there is no proof for {name}, so they are shown and not ranked"
        if proof.verdict == NO_PROOF:
            missing = f"{proof.name}: {'; '.join(proof.reasons)}"
            why = f"nothing shows yet that {first} and {second} compute the same ({missing})"
            return NO_PROOF, f"{why}, so they are shown and not ranked; prove it: paceline check fairness STUDY"
    return None


def _refused_pair(a: str, b: str, word: RefusalWord, note: str, *, margin: float, n_runs: int) -> PairVerdict:
    return PairVerdict(
        a=a,
        b=b,
        ratio=None,
        p=None,
        verdict=word,
        margin=margin,
        n_runs=n_runs,
        note=note,
    )


def _note(a: Runs, b: Runs, *, spread_known: bool) -> str | None:
    notes = []
    threads = a.trial.cluster.threads_per_worker, b.trial.cluster.threads_per_worker
    if threads[0] != threads[1]:
        notes.append(f"unequal budgets: {threads[0]} against {threads[1]} threads per worker")
    if why := unlike(a, b):
        notes.append(why)
    if not spread_known:
        notes.append("too few runs to know the spread; raise measure.repeats")
    return "; ".join(notes) or None


def _fewer(a: Runs, b: Runs) -> int:
    return min(len(a.measured), len(b.measured))
