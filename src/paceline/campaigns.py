"""Runs that follow from what is known: measurements for the performance model, and trials of a recommendation.

This module joins the workbench, which acts, with the stages after the record, which only propose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.errors import PacelineError
from paceline.model.fitting.calibration import Calibration, write_calibrations
from paceline.model.fitting.companions import companions
from paceline.model.fitting.design import next_run
from paceline.model.fitting.kept import calibrations_path
from paceline.plan import Proposal
from paceline.recommend.advise import choices_of
from paceline.recommend.candidates import measured
from paceline.recommend.experiment import experiment
from paceline.recommend.objective import Wish
from paceline.recommend.recommendation import Advice
from paceline.recommend.search import survey, to_try
from paceline.recommend.tried import Tried, outcomes
from paceline.record import Record
from paceline.record.failures import none_ended_well
from paceline.run import Budget
from paceline.run.conformance import REFERENCE
from paceline.snapshot import Snapshot
from paceline.spec import Study, parse_study
from paceline.stats.estimate import Estimate
from paceline.workbench import Watcher, Workbench


def companions_of(bench: Workbench) -> list[Study]:
    """The studies that must be measured for a calibration besides the study itself."""
    frameworks = bench.prepared.catalog.capabilities
    capabilities = {name: frameworks[name] for name in frameworks if name != REFERENCE}
    return companions(bench.prepared.study, capabilities, bench.prepared.trials)


def measure_for_model(bench: Workbench, watcher: Watcher, budget: Budget) -> None:
    """Run the study, its companions and, within the budget, the runs that improve the model most.

    The model is stored after every round, so that little is lost if the user interrupts.
    """
    for companion in companions_of(bench):
        watcher.say(f"for the model: {companion.name}")
        Workbench(companion, bench.folder).run(watcher)

    def propose(_records: Sequence[Record]) -> Proposal | None:
        snapshot = bench.snapshot()
        keep_models(snapshot)
        measured_models = [(model.evidence, model.calibration) for model in snapshot.models if model.evidence]
        study, cores = bench.prepared.study, bench.prepared.catalog.site.cores_per_host
        most_useful = next_run(measured_models, study, cores)
        if most_useful is None:
            return None
        axes, reason = most_useful
        return Proposal(study=replace(study, axes={**study.axes, **axes}, of_models={}), reason=reason)

    further = bool(budget.seconds) and not bench.prepared.study.of_collectives
    bench.run(watcher, propose=propose if further else None, budget=budget)


def keep_models(snapshot: Snapshot) -> list[Calibration]:
    """Store the calibration of every family that was measured.

    Raises:
        PacelineError: nothing is recorded.
    """
    calibrations = [model.calibration for model in snapshot.models if model.evidence is not None]
    if not calibrations:
        if failed := none_ended_well(snapshot.study.source, snapshot.records):
            raise failed
        raise PacelineError(
            f"{snapshot.study.source}: nothing is recorded yet in {snapshot.folder}",
            hint="measure it: paceline calibrate STUDY   without --no-run",
        )
    write_calibrations(calibrations, calibrations_path(snapshot.folder, snapshot.study.name))
    return calibrations


def _learned(bench: Workbench) -> Snapshot:
    """Keeps the models of what is recorded now, and returns a snapshot that uses them without fitting again."""
    keep_models(bench.snapshot())
    return bench.snapshot()


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommended:
    """Advice, and the outcomes of the runs that were made for it."""

    advice: Advice
    snapshot: Snapshot
    """What the advice is based on."""
    tried: tuple[Tried, ...] = ()


def try_out(bench: Workbench, wish: Wish, watcher: Watcher, budget: Budget) -> Recommended:
    """Run trials that could change the recommendation until there are none or the budget is used up; then advise again.

    The model is also fitted to these runs and stored.

    Raises:
        PacelineError: as raised by `Snapshot.advice`.
    """
    predicted: dict[str, tuple[str, Estimate]] = {}
    snapshot = bench.snapshot()

    def propose(_records: Sequence[Record]) -> Proposal | None:
        nonlocal snapshot
        if predicted:
            snapshot = _learned(bench)
        basis = snapshot.basis
        ranking = survey(basis, wish)
        trials, _ = to_try(ranking, basis)
        if not trials:
            return None
        ids = {trial.id for trial in trials}
        chosen = [candidate for candidate in ranking.ranked if candidate.trial.id in ids]
        labels = [choice.label for choice in choices_of([candidate.trial for candidate in chosen], basis.catalog)]
        for candidate, label in zip(chosen, labels, strict=True):
            predicted[candidate.identity] = (label, candidate.throughput)
        # Files that the study names are beside the user's study file.
        study = parse_study(experiment(basis.study, trials, basis.catalog), source=basis.study.source)
        return Proposal(study=study, reason=f"trying what the model says is best: {'; '.join(labels)}")

    if (first := propose(())) is not None:
        watcher.say(first.reason)
        bench.beside(first.study).run(watcher, propose=propose, budget=budget)
        # If the budget ended the campaign, the last proposal has not seen the last runs.
        snapshot = _learned(bench)
    rows, _ = measured(snapshot.basis)
    return Recommended(advice=snapshot.advice(wish), snapshot=snapshot, tried=tuple(outcomes(predicted, rows)))
