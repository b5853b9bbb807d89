"""The fairness proof: whether each framework computes what the graph defines, up to the rounding of float32.

Pure. The records of a `ProofCase` come in; a `Proof` goes out, with every distance beside what was allowed. Distances
are relative to the float64 reference. What is allowed is FACTOR times the largest distance of PyTorch's float32
trainings from it (the roundings, which the reference's record holds), never less than FACTOR times the spacing of
float32 numbers (around one, where a loss is smaller), which no float32 program can undercut but by luck. Rounding
errors grow from step to step, so at each step the largest distance so far counts. The first loss has a ceiling,
whatever the roundings say. Strategies that do not promise exactness are held to the bounds of what they give up
(`bounds`), and to a falling loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from paceline.compare.bounds import hold
from paceline.compare.distances import (
    FLOAT32_SPACING,
    Distance,
    gradient_distance,
    loss_distance,
    means_distance,
    norm_distance,
    weights_distance,
)
from paceline.compare.labels import label_rows
from paceline.compare.proof_evidence import ProofEvidence, traits_of
from paceline.plan.approximation import FACTOR
from paceline.plan.proof import ProofCase, proof_run
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import EXACT, StrategyClass
from paceline.record.record import Record
from paceline.stats.estimate import finite

CEILING = 1e-5
"""Most that is allowed at the first loss: no step has been taken yet that could have carried rounding further. A fault
in the float32 trainings themselves shows here."""

ProofVerdict = Literal["agrees", "not comparable", "no proof"]
AGREES: Final = "agrees"
NOT_COMPARABLE: Final = "not comparable"
NO_PROOF: Final = "no proof"


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The result of the proof for one strategy of a framework on one graph."""

    trial: str
    """The id of the trial whose run was judged."""
    framework: str
    strategy: str
    strategy_class: StrategyClass
    workload: str
    workers: int
    verdict: ProofVerdict
    variant: str = ""
    """Knobs and options that distinguish it from other proofs of the same framework, strategy, workload and workers."""
    reasons: tuple[str, ...] = ()
    """Why it does not agree, the simplest reason first."""
    distances: tuple[Distance, ...] = ()
    told: tuple[str, ...] = ()
    """What else the class of the strategy promises, as it was seen: falling loss, staleness, compression error; and
    what its bounds rest on."""
    unbounded: tuple[str, ...] = ()
    """What of an approximate or asynchronous strategy nothing bounds, and why; its loss falls all the same."""
    flops_ratio: float | None = None
    """The FLOPs per training step that the framework counts ÷ those of the graph; None if it does not count them."""
    traits: Mapping[str, str] = field(default_factory=dict)
    """Properties that may differ between frameworks that compute the same: version, layout, BLAS, compiler, threads."""

    @property
    def name(self) -> str:
        named = f"{self.framework} {self.strategy}"
        return f"{named} ({self.variant})" if self.variant else named

    def to_json(self) -> dict[str, object]:
        data: dict[str, object] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return data | {
            "reasons": list(self.reasons),
            "told": list(self.told),
            "unbounded": list(self.unbounded),
            "traits": dict(self.traits),
            "distances": [distance.to_json() for distance in self.distances],
            "flops_ratio": finite(self.flops_ratio),
        }


class Fairness:
    """All proofs of a study."""

    def __init__(self, proofs: Iterable[Proof] = (), proves_on: str | None = None) -> None:
        """Args: proves_on: the site of the proof runs, if it is not the site of the trials."""
        self.proofs = {proof.trial: proof for proof in proofs}
        self._proves_on = proves_on
        self._of: dict[str, Proof | None] = {}

    def of(self, trial: Trial) -> Proof | None:
        """Returns the proof that applies to a trial. The result is kept, because every pair of rows needs it."""
        if trial.id not in self._of:
            self._of[trial.id] = self.proofs.get(proof_run(trial, self._proves_on).id) if self.proofs else None
        return self._of[trial.id]

    def to_json(self) -> list[dict[str, object]]:
        return [proof.to_json() for proof in self.proofs.values()]


def prove(cases: Iterable[ProofCase], records: Mapping[str, Record], proves_on: str | None = None) -> Fairness:
    """Judges every case.

    Args:
        cases: the cases of the proof.
        records: trial id → its proof run.
        proves_on: the site of the proof runs, if it is not the site of the trials.
    """
    cases = list(cases)
    variants = _variants([case.subject for case in cases])
    return Fairness((_judge(case, records, variants.get(case.subject.id, "")) for case in cases), proves_on)


def _variants(trials: Sequence[Trial]) -> dict[str, str]:
    """Returns trial id → what distinguishes it, for trials that would have the same name otherwise."""
    alike: dict[tuple[str, str, str, int], list[Trial]] = {}
    for trial in trials:
        named = (trial.framework.name, trial.framework.strategy, trial.workload.model, trial.workers)
        alike.setdefault(named, []).append(trial)
    variants: dict[str, str] = {}
    for group in alike.values():
        if len(group) > 1:
            labels = label_rows(group, [None] * len(group)).each
            variants |= {trial.id: label for trial, label in zip(group, labels, strict=True)}
    return variants


def _judge(case: ProofCase, records: Mapping[str, Record], variant: str) -> Proof:
    trial = case.subject
    unproved = Proof(
        trial=trial.id,
        framework=trial.framework.name,
        strategy=trial.framework.strategy,
        strategy_class=trial.framework.strategy_class,
        workload=trial.workload.model,
        workers=trial.workers,
        variant=variant,
        verdict=NO_PROOF,
    )
    for needed, what in ((trial, "its proof run"), (case.reference, "the reference")):
        record = records.get(needed.id)
        if record is None:
            return replace(unproved, reasons=(f"{what} has not been run",))
        if not record.ok:
            why = f"{what} {record.outcome.kind.value.replace('_', ' ')}: {record.outcome.reason}"
            return replace(unproved, reasons=(why,))
    evidence, reference = ProofEvidence(records[trial.id]), ProofEvidence(records[case.reference.id])
    if not reference.roundings:
        return replace(unproved, reasons=("the reference does not report the effect of rounding",))
    unbounded: tuple[str, ...] = ()
    if trial.framework.strategy_class == EXACT:
        distances = _distances(evidence, reference)
        reasons = [*evidence.wrong_parameters(), *_too_far(distances), *evidence.unequal_ranks()]
        promises = [*evidence.own_statistics()]
    else:
        held = hold(evidence, reference, case.approximations)
        distances, unbounded = list(held.distances), held.unbounded
        reasons = [*evidence.wrong_parameters(), *evidence.loss_does_not_fall(), *held.exceeded()]
        promises = [
            evidence.loss_course(),
            *evidence.staleness(),
            *evidence.compression_error(),
            *(f"bound: {approximation.because}" for approximation in held.by),
            *(f"not bounded: {what}" for what in unbounded),
        ]
    return replace(
        unproved,
        unbounded=unbounded,
        verdict=NOT_COMPARABLE if reasons else AGREES,
        reasons=tuple(reasons),
        distances=tuple(distances),
        told=tuple(promises),
        traits=traits_of(evidence.record),
        flops_ratio=evidence.flops_ratio,
    )


def _distances(evidence: ProofEvidence, reference: ProofEvidence) -> list[Distance]:
    truth, roundings = evidence.sees(reference.of_workers), reference.roundings
    largest = np.max([loss_distance(evidence.sees(rounding.of_workers), truth) for rounding in roundings], axis=0)
    # A loss is a mean of logarithms of probabilities, whose rounding is that of numbers around one even if it is small.
    spacing = FLOAT32_SPACING * np.max(np.maximum(1.0, 1.0 / np.abs(truth)), axis=0)
    # The largest distance so far counts, because a rounded loss can equal the true one by chance.
    allowed = FACTOR * np.maximum(np.maximum.accumulate(largest), spacing)
    allowed[0] = min(allowed[0], CEILING)
    loss = loss_distance(evidence.losses, truth)
    worst = int(np.argmax(loss / allowed))
    distances = [
        Distance(what=f"loss of step {step}", distance=float(loss[step]), allowed=float(allowed[step]))
        for step in dict.fromkeys((0, worst))
    ]
    measures = [
        ("gradient norms", norm_distance),
        ("gradient", gradient_distance),
        (f"weights after {len(loss)} steps", weights_distance),
    ]
    # With several workers the reference has no statistics, because each rank has its own.
    if reference.shown.statistics:
        measures.append((f"batch-norm means after {len(loss)} steps", means_distance))
    for what, measure in measures:
        most = max(FLOAT32_SPACING, *(measure(rounding, reference.shown) for rounding in roundings))
        distances.append(Distance(what=what, distance=measure(evidence.shown, reference.shown), allowed=FACTOR * most))
    return distances


def _too_far(distances: Iterable[Distance]) -> list[str]:
    return [
        f"{d.what} is {d.distance:.1e} from the reference, {d.allowed:.1e} is allowed for rounding"
        for d in distances
        if not d.ok
    ]
