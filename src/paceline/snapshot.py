"""All that is known about one study and one store at one moment. Every command, the Python API and the report read it.

Each part is computed at most once, and only when somebody asks for it: catalog and trials, plan, records, fairness,
comparison, models, explanations, advice. So two answers that are made from one snapshot cannot disagree. Runs nothing.
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
    """One study and one store."""

    prepared: PreparedStudy
    reading: Reading
    margin: float = MARGIN
    """Relative difference within which two rows are called equal."""
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
        """The present state of a study in the store of this folder, which need not exist yet."""
        return cls(
            prepared=PreparedStudy.of(study, proving=proving),
            reading=Reading(folder),
            margin=margin,
            across_machines=across_machines,
        )

    def without(self, trial_id: str) -> Snapshot:
        """What would be known, had this trial never been run."""
        return replace(self, reading=self.reading.without(trial_id))

    @property
    def study(self) -> Study:
        return self.prepared.study

    @property
    def folder(self) -> Path:
        """The store's."""
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
        """The runs still to do, the skips with reasons, the estimate."""
        return self.plan_for()

    def plan_for(
        self,
        *,
        retry: frozenset[str] = frozenset(),
        again: bool = False,
        repeats: Mapping[str, int] | None = None,
        only_proof: bool = False,
    ) -> Plan:
        """The plan under the options of `paceline run`.

        Args:
            retry: outcomes that are run again.
            again: add the study's repeats to those that are recorded.
            repeats: trial id → repeats in all, instead of the study's own.
            only_proof: plan the fairness proof and nothing that is measured.

        Raises:
            SpecError: a trial wants more cores than there are.
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
        """What is recorded of the study's trials: the last attempt of each repeat."""
        return self.reading.runs([trial.id for trial in self.trials])

    @cached_property
    def further_records(self) -> list[Record]:
        """Measurements that were made for this study of trials that it does not name: calibrations and tries."""
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
        """The proof by the adapters that made these records, or by today's where there are none."""
        cases = self.prepared.proof_cases(further)
        workers = {record.input_facts.worker for record in records if record.ok} or {worker_digest()}
        shown = [
            record
            for record in self.reading.runs([trial.id for trial in runs_of(cases)])
            if record.input_facts.worker in workers
        ]
        # The latest, unless it failed where an earlier one, on another machine perhaps, did not.
        latest = sorted(shown, key=lambda record: (record.ok, record.started))
        return prove(cases, {record.trial.id: record for record in latest}, self.prepared.catalog.site.proves_on)

    @cached_property
    def comparison(self) -> Comparison:
        """All trials of the study, those without a record and those that cannot run here included."""
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
        """The tables behind the comparison of a study that measures collectives by themselves."""
        return tables_of(gather(self.records, self.trials), self.comparison)

    @property
    def results(self) -> Comparison | Collectives:
        """What the records say: tables of collectives, or a comparison."""
        return self.collectives if self.study.of_collectives else self.comparison

    @cached_property
    def labels(self) -> dict[str, str]:
        """Trial id → what it is called beside the others."""
        return {row.trial: row.label for row in self.comparison.rows}

    # The performance model. Its modules load SciPy, which takes a second: they are imported where they are needed.

    @cached_property
    def _companions(self) -> tuple[list[Record], list[Record]]:
        """(collectives by themselves, layers one by one), made for whatever study in the same store."""
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
        """The models that may predict: those of families that were calibrated."""
        return [model.calibration for model in self.models if model.calibrated]

    @property
    def outdated(self) -> list[str]:
        """Families whose kept calibration is older than what is recorded; every answer uses a fresh fit instead."""
        return [model.family.label for model in self.models if model.outdated]

    def graph(self, trial: Trial) -> Graph | None:
        """What a trial trains; None where that is a script or a collective."""
        workload = self.prepared.catalog.workload(trial.workload.model, trial.workload.options)
        return workload if isinstance(workload, Graph) else None

    def _subjects(self, trial_ids: Collection[str] | None) -> list[Subject]:
        """Trials with a run that ended well, with the model of their family; None: all.

        A family of which no trial is wanted is not fitted.
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
        """Trial id and machine → explanation, of those that somebody asked for."""
        return {}

    def explained(self, trial_ids: Collection[str] | None = None) -> list[Explanation]:
        """Explanations of trials that were measured, tries included; None: of all. Each is made once."""
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
        """One for every trial of the study that was measured."""
        own = {trial.id for trial in self.trials}
        return [explanation for explanation in self.explained() if explanation.trial in own]

    @cached_property
    def gaps(self) -> list[Gap]:
        """Why the slower one is slower, for every pair of rows that differ."""
        from paceline.explain.gap import gaps_of

        _, profiles = self._companions
        return gaps_of(self.comparison, self._subjects(None), profiles)

    @cached_property
    def basis(self) -> Basis:
        """Everything that a recommendation rests on."""
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
        """Runs that tried what was recommended for this study."""
        from paceline.recommend.experiment import name_of_tries

        return [record for record in self.further_records if record.study == name_of_tries(self.study.name)]

    def advice(self, wish: Wish, explained: Collection[str] | None = None) -> Advice:
        """What to choose.

        Args:
            explained: ids of the trials of which it is said what holds them back; None: all.

        Raises:
            PacelineError: nothing was measured well enough, or a name in the wish is not there.
        """
        from paceline.recommend.advise import advise

        findings = {explanation.trial: explanation.findings for explanation in self.explained(explained)}
        return advise(self.basis, wish, findings)
