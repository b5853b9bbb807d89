"""Everything that is known about one study and one store at one moment. All commands and the Python API read it.

Each part is computed at most once, and only when it is needed: catalog and trials, plan, records, fairness, comparison,
models, explanations, advice. So two answers from the same snapshot cannot disagree. A snapshot never runs anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.compare import Collectives, Comparison, Fairness, compare, gather, prove, tables_of
from paceline.plan import Plan, Trial, schedule
from paceline.plan.estimate import make_estimate
from paceline.plan.expand import require_cores
from paceline.plan.proof import runs_of
from paceline.plan.resume import Attempt, done_runs, hopeless_trials, next_attempts, repeats_again
from paceline.prepared import PreparedStudy
from paceline.record import MEASUREMENT, Record, Store
from paceline.record.reading import Reading
from paceline.run.host_state import machine
from paceline.run.worker_source import worker_digest
from paceline.spec import Study
from paceline.stats import MARGIN
from paceline.workloads import Graph

if TYPE_CHECKING:
    from paceline.explain.explanation import Explanation
    from paceline.explain.gap import Gap
    from paceline.explain.trials import Subject
    from paceline.model.fitting.calibration import Calibration
    from paceline.model.fitting.families import FamilyModel
    from paceline.recommend.candidates import Basis
    from paceline.recommend.objective import Wish
    from paceline.recommend.recommendation import Advice


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What is known about one study and one store."""

    prepared: PreparedStudy
    reading: Reading
    margin: float = MARGIN
    """The relative difference within which two rows are called equal."""
    across_machines: bool = False
    """Whether rows of different machines are ranked against each other."""

    @classmethod
    def of(
        cls,
        study: Study,
        folder: Path,
        *,
        proving: bool = False,
        margin: float = MARGIN,
        across_machines: bool = False,
    ) -> Snapshot:
        """Returns the snapshot of a study and the store in this folder, which need not exist yet."""
        return cls(
            prepared=PreparedStudy.of(study, proving=proving),
            reading=Reading(folder),
            margin=margin,
            across_machines=across_machines,
        )

    def without(self, trial_id: str) -> Snapshot:
        """Returns the snapshot of the same study as if this trial had never been run."""
        return replace(self, reading=self.reading.without(trial_id))

    @property
    def study(self) -> Study:
        return self.prepared.study

    @property
    def folder(self) -> Path:
        """The folder of the store."""
        return self.reading.folder

    @property
    def trials(self) -> list[Trial]:
        """Every trial of the study, whether it can run here or not."""
        return [expanded.trial for expanded in self.prepared.expanded]

    @property
    def skipped(self) -> dict[str, str]:
        """Trial id → why it cannot run here."""
        return {expanded.trial.id: expanded.refusal for expanded in self.prepared.expanded if expanded.refusal}

    @cached_property
    def plan(self) -> Plan:
        """The runs that are missing, the skipped trials with their reasons, and the estimated time."""
        return self.plan_for()

    def plan_for(
        self,
        *,
        retry: frozenset[str] = frozenset(),
        again: bool = False,
        repeats: Mapping[str, int] | None = None,
        only_proof: bool = False,
    ) -> Plan:
        """Returns the plan for the options of `paceline run`.

        Args:
            retry: the outcomes whose runs are repeated.
            again: add the repeats of the study to those that are recorded.
            repeats: trial id → the total number of repeats, instead of that of the study.
            only_proof: plan only the fairness proof.

        Raises:
            SpecError: a trial needs more cores than there are.
        """
        prepared = self.prepared
        require_cores(self.study, prepared.expanded)
        unavailable = prepared.catalog.unavailable
        proofs = [trial for trial in runs_of(prepared.proof_cases()) if trial.framework.name not in unavailable]
        trials = [*proofs, *self.trials]
        attempts, elapsed = self._recorded_here(trials)
        if again:
            repeats = repeats_again(self.study, prepared.trials, attempts)
        done = done_runs(attempts, trials, worker_digest())
        return schedule(
            self.study,
            [expanded for expanded in prepared.expanded if expanded.refusal or not only_proof],
            estimate=make_estimate(prepared.catalog.capabilities, prepared.catalog.workload, elapsed),
            done=done,
            hopeless={} if retry else hopeless_trials(attempts, done),
            attempts=next_attempts(attempts),
            retry=retry,
            repeats=repeats,
            proofs=proofs,
        )

    def _recorded_here(self, trials: Sequence[Trial]) -> tuple[list[Attempt], dict[str, float]]:
        """Returns the last attempts on this machine, and trial id → the recent wall time of its runs here."""
        if not Store.exists(self.folder):
            return [], {}
        here = machine()["id"]
        with Store.open(self.folder) as store:
            return store.last_attempts(here), store.recent_elapsed([trial.id for trial in trials], here)

    @cached_property
    def records(self) -> list[Record]:
        """The recorded runs of the trials of the study: the last attempt at each repeat."""
        return self.reading.runs([trial.id for trial in self.trials])

    @cached_property
    def further_records(self) -> list[Record]:
        """Measurements for this study of trials that it does not contain: of calibrations and tried recommendations."""
        from paceline.recommend.experiment import name_of_tries

        own = {trial.id for trial in self.trials}
        proposed = [
            trial.id
            for study in (self.study.name, name_of_tries(self.study.name))
            for trial in self.reading.trials(study=study)
            if trial.id not in own and not trial.measure.evidence
        ]
        return [record for record in self.reading.runs(proposed) if record.kind == MEASUREMENT]

    @cached_property
    def fairness(self) -> Fairness:
        """The fairness proof, as far as it is recorded."""
        return self._proved(self.records)

    def _proved(self, records: Sequence[Record], further: tuple[Trial, ...] = ()) -> Fairness:
        """Returns the proof for the adapters that made these records, or for the present ones without records."""
        cases = self.prepared.proof_cases(further)
        workers = {record.input_facts.worker for record in records if record.ok} or {worker_digest()}
        shown = [
            record
            for record in self.reading.runs([trial.id for trial in runs_of(cases)])
            if record.input_facts.worker in workers
        ]
        # The latest run counts, but a successful one (perhaps on another machine) counts more than a failed one.
        latest = sorted(shown, key=lambda record: (record.ok, record.started))
        return prove(cases, {record.trial.id: record for record in latest}, self.prepared.catalog.site.proves_on)

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison of all trials of the study, including those without a record or that cannot run here."""
        return self._compared(self.records, self.trials, self.fairness)

    def _compared(self, records: Sequence[Record], trials: Sequence[Trial], fairness: Fairness) -> Comparison:
        return compare(
            records,
            trials=trials,
            skipped=self.skipped,
            margin=self.margin,
            across_machines=self.across_machines,
            fairness=fairness,
        )

    @cached_property
    def collectives(self) -> Collectives:
        """The tables of a study that measures stand-alone collectives."""
        return tables_of(gather(self.records, self.trials), self.comparison)

    @property
    def results(self) -> Comparison | Collectives:
        """The tables of collectives for a study that measures them, else the comparison."""
        return self.collectives if self.study.of_collectives else self.comparison

    @cached_property
    def labels(self) -> dict[str, str]:
        """Trial id → its label in the comparison."""
        return {row.trial: row.label for row in self.comparison.rows}

    # The modules of the performance model load SciPy, which takes a second, so they are imported where they are needed.

    @cached_property
    def _companions(self) -> tuple[list[Record], list[Record]]:
        """(runs of stand-alone collectives, runs with layer times), of any study in the same store."""
        trials = self.reading.trials()
        probes = [trial.id for trial in trials if trial.workload.collective is not None]
        profiles = [trial.id for trial in trials if trial.measure.layers]
        return self.reading.runs(probes), self.reading.runs(profiles)

    @cached_property
    def models(self) -> list[FamilyModel]:
        """The performance model of every family that was measured or calibrated."""
        from paceline.model.fitting.families import model_families, observed
        from paceline.model.fitting.kept import calibrations_path, kept_calibrations
        from paceline.model.foreign.imported import read_imports, with_imports
        from paceline.recorded import manner

        probes, profiles = self._companions
        imports = read_imports(self.folder, self.study.name)
        evidence = observed(
            [*self.records, *self.further_records],
            probes=probes,
            profiles=profiles,
            graph=self.graph,
            manner=manner,
        )
        kept = calibrations_path(self.folder, self.study.name).exists()
        return model_families(
            [with_imports(family, imports) for family in evidence],
            kept_calibrations(self.folder, self.study.name) if kept else [],
        )

    @cached_property
    def calibrations(self) -> list[Calibration]:
        """The calibrations that may be used for predictions: those of families that were calibrated."""
        return [model.calibration for model in self.models if model.calibrated]

    @property
    def outdated(self) -> list[str]:
        """The families whose stored calibration is older than their records; every answer uses a new fit instead."""
        return [model.family.label for model in self.models if model.outdated]

    def graph(self, trial: Trial) -> Graph | None:
        """Returns the graph that a trial trains; None for a script or a collective."""
        workload = self.prepared.catalog.workload(trial.workload.model, trial.workload.options)
        return workload if isinstance(workload, Graph) else None

    def _subjects(self, trial_ids: Collection[str] | None) -> list[Subject]:
        """Returns the trials with a successful run, with the model of their family; None means all trials.

        A family without any of these trials is not fitted.
        """
        from paceline.explain.trials import subjects

        measured = [(model, model.evidence) for model in self.models if model.evidence is not None]
        wanted = [
            (evidence, model.calibration)
            for model, evidence in measured
            if trial_ids is None or any(training.trial.id in trial_ids for training in evidence.trainings)
        ]
        good = [record for record in (*self.records, *self.further_records) if record.ok]
        return subjects(wanted, good)

    @cached_property
    def _explained(self) -> dict[tuple[str, str], Explanation]:
        """Trial id and machine → its explanation, for those that were asked for so far."""
        return {}

    def explained(self, trial_ids: Collection[str] | None = None) -> list[Explanation]:
        """Returns the explanations of measured trials, including tries; None means all. Each is made only once."""
        from paceline.explain.experiment import experiment_for
        from paceline.explain.trials import explain_among

        subjects = self._subjects(trial_ids)
        wanted = [subject for subject in subjects if trial_ids is None or subject.trial.id in trial_ids]
        for subject in wanted:
            if (subject.trial.id, subject.machine) not in self._explained:
                self._explained[subject.trial.id, subject.machine] = explain_among(
                    subject,
                    subjects,
                    label=self.labels.get(subject.trial.id, subject.trial.label),
                    experiment=experiment_for(self.study, subject.trial, self.prepared.catalog),
                    graph=self.graph(subject.trial),
                    folder=self.folder,
                )
        return [self._explained[subject.trial.id, subject.machine] for subject in wanted]

    @cached_property
    def explanations(self) -> list[Explanation]:
        """The explanation of every trial of the study that was measured."""
        own = {trial.id for trial in self.trials}
        return [explanation for explanation in self.explained() if explanation.trial in own]

    @cached_property
    def gaps(self) -> list[Gap]:
        """For every pair of rows that differ, why the slower one is slower."""
        from paceline.explain.gap import gaps_of

        _, profiles = self._companions
        return gaps_of(self.comparison, self._subjects(None), profiles)

    @cached_property
    def basis(self) -> Basis:
        """The data that a recommendation rests on."""
        from paceline.recommend.candidates import Basis

        records = [*self.records, *self._tries]
        tried = tuple({record.trial.id: record.trial for record in self._tries}.values())
        trials = [*self.trials, *tried]
        fairness = self._proved(records, tried) if tried else self.fairness
        comparison = self._compared(records, trials, fairness) if tried else self.comparison
        return Basis(
            study=self.study,
            comparison=comparison,
            runs=tuple(gather(records, trials)),
            calibrations=tuple(self.calibrations),
            fairness=fairness,
            catalog=self.prepared.catalog,
            tries=frozenset(trial.id for trial in tried),
        )

    @cached_property
    def _tries(self) -> list[Record]:
        """The runs that tried recommendations for this study."""
        from paceline.recommend.experiment import name_of_tries

        return [record for record in self.further_records if record.study == name_of_tries(self.study.name)]

    def advice(self, wish: Wish, explained: Collection[str] | None = None) -> Advice:
        """Returns the recommendation for a wish.

        Args:
            wish: the goal, prices and limits.
            explained: the ids of the trials whose bottlenecks are given as reasons; None for all.

        Raises:
            PacelineError: no configuration has enough runs, or the wish names something that was not measured.
        """
        from paceline.recommend.advise import advise

        findings = {explanation.trial: explanation.findings for explanation in self.explained(explained)}
        return advise(self.basis, wish, findings)
