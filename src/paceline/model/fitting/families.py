"""The model of every family of a study: the kept calibration where it is current, else one fitted now. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property

from paceline.model.equations.ready import Ready, ready_of
from paceline.model.fitting.calibration import Calibration, ModelFamily
from paceline.model.fitting.digest import digest_of
from paceline.model.fitting.fit import evidence_of, fit
from paceline.model.fitting.observe import Manner, collectives, trainings
from paceline.model.fitting.problem import Evidence
from paceline.plan.trial import Trial
from paceline.record.record import Record
from paceline.workloads.graph import Graph


class Origin(str, Enum):
    """Where the calibration of an answer comes from."""

    KEPT = "kept"
    """`paceline calibrate` kept it, and nothing was recorded or imported since."""
    FRESH = "fresh"
    """It was fitted for this answer."""


@dataclass(frozen=True, kw_only=True)
class FamilyModel:
    """One family: what is known of it, and its model, which is fitted when somebody first asks for it."""

    family: ModelFamily
    evidence: Evidence | None
    """What is recorded and imported; None where only the kept calibration is here."""
    kept: Calibration | None
    """The kept calibration, if it is current."""
    outdated: bool = False
    """A calibration is kept, but records, imports or the version of Paceline are newer; this answer does not use it."""

    @property
    def origin(self) -> Origin:
        return Origin.FRESH if self.kept is None else Origin.KEPT

    @property
    def calibrated(self) -> bool:
        """Whether somebody calibrated this family, so that its model may predict what was never run."""
        return self.kept is not None or self.outdated

    @cached_property
    def calibration(self) -> Calibration:
        """The kept one while it is current, else a fresh fit."""
        if self.kept is not None:
            return self.kept
        assert self.evidence is not None
        return fit(self.evidence)


def model_families(evidence: Iterable[Evidence], kept: Sequence[Calibration]) -> list[FamilyModel]:
    """Every family that was measured, then those of which only a calibration is kept."""
    measured = [_model(known, kept) for known in evidence]
    families = [model.family for model in measured]
    return measured + [
        FamilyModel(family=calibration.family, evidence=None, kept=calibration)
        for calibration in kept
        if calibration.family not in families
    ]


def _model(evidence: Evidence, kept: Sequence[Calibration]) -> FamilyModel:
    earlier = next((calibration for calibration in kept if calibration.family == evidence.family), None)
    current = earlier is not None and earlier.evidence == digest_of(evidence)
    return FamilyModel(
        family=evidence.family,
        evidence=evidence,
        kept=earlier if current else None,
        outdated=earlier is not None and not current,
    )


def observed(
    records: Sequence[Record],
    *,
    probes: Sequence[Record],
    profiles: Sequence[Record],
    graph: Callable[[Trial], Graph | None],
    manner: Callable[[Trial], Manner],
) -> list[Evidence]:
    """What records say of each family that was trained.

    Args:
        records: runs that train.
        probes: runs of collectives by themselves.
        profiles: runs whose layers were timed one by one.
        graph: what a trial trains; None where it is not at hand.
        manner: how a trial exchanges and is fed.
    """
    first = {record.trial.workload.graph: record.trial for record in reversed(records)}
    machines = {record.trial.id: str(record.machine.get("id", "unknown")) for record in records}

    @cache
    def ready(identity: str) -> Ready | None:
        trained = graph(first[identity])
        timed = [record for record in profiles if record.trial.workload.graph == identity]
        return ready_of(timed, trained) if trained is not None else None

    def ready_of_trial(trial: Trial) -> Ready | None:
        return ready(trial.workload.graph)

    known = evidence_of(
        trainings(records, manner, ready_of_trial),
        collectives(probes, manner),
        lambda trial: machines[trial.id],
        manner,
        ready_of_trial,
    )
    return [family for family in known if family.trainings]
