"""The model of each family of a study: the stored calibration if it is current, otherwise a new fit. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class FamilyModel:
    """One family: its observations and its model, which is fitted on first use."""

    family: ModelFamily
    evidence: Evidence | None
    """Recorded and imported observations; None if only the stored calibration is available."""
    kept: Calibration | None
    """The stored calibration, if it is current."""
    outdated: bool = False
    """A calibration is stored but not used, because records, imports or Paceline are newer."""

    @property
    def calibrated(self) -> bool:
        """Whether this family was calibrated, so that its model may predict configurations that were never run."""
        return self.kept is not None or self.outdated

    @cached_property
    def calibration(self) -> Calibration:
        """The stored calibration if it is current, otherwise a new fit."""
        if self.kept is not None:
            return self.kept
        assert self.evidence is not None
        return fit(self.evidence)


def model_families(evidence: Iterable[Evidence], kept: Sequence[Calibration]) -> list[FamilyModel]:
    """All measured families, then those with only a stored calibration."""
    measured = [_model(observations, kept) for observations in evidence]
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
    """The observations of each trained family.

    Args:
        records: Runs that train.
        probes: Runs of stand-alone collectives.
        profiles: Runs that timed each layer.
        graph: Returns the graph that a trial trains; None if it is not available.
        manner: Returns how a trial exchanges gradients and receives input.
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

    evidence = evidence_of(
        trainings(records, manner, ready_of_trial),
        collectives(probes, manner),
        lambda trial: machines[trial.id],
        manner,
        ready_of_trial,
    )
    return [family for family in evidence if family.trainings]
