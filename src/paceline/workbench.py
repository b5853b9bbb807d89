"""The stages joined: a study, a store, and what this machine offers. The command line and the Python API sit on it.

Holds no logic of a stage: it gathers what the pure stages want to know, hands it to them, and runs what they plan.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from paceline.compare import Collectives, Comparison, Fairness, compare, gather, prove, tables_of
from paceline.environments import (
    Environment,
    EnvironmentState,
    ExistingInterpreter,
    HostInterpreter,
    cache_root,
    load_environment,
)
from paceline.errors import EnvironmentBuildError, PacelineError
from paceline.frameworks import Framework, load_framework
from paceline.plan import Catalog, Plan, PlannedRun, Proposal, Trial, expand, schedule
from paceline.plan.estimate import make_estimate
from paceline.plan.proof import ProofCase, runs_of
from paceline.record import MEASUREMENT, PROOF, OutcomeKind, Record, Store
from paceline.record.attempt import Attempt
from paceline.run import Bench, Budget, Equipment, campaign, clear_scratch, machine_lock, run_once
from paceline.run.conformance import REFERENCE, cases_of
from paceline.run.host_state import machine
from paceline.run.worker_source import worker_digest
from paceline.sites import Site, load_site
from paceline.spec import Study
from paceline.stats import MARGIN
from paceline.workloads import COLLECTIVE, MODELS, Graph, Workload, load_collective, load_workload, read_program

FAILED = frozenset(kind.value for kind in OutcomeKind if kind is not OutcomeKind.OK)


class Watcher(Protocol):
    """Told between runs, never during one."""

    def say(self, message: str) -> None: ...
    def planned(self, plan: Plan) -> None: ...
    def before(self, run: PlannedRun, number: int, total: int, remaining_s: float) -> None: ...
    def after(self, record: Record) -> None: ...


class Silent:
    """A watcher that says nothing."""

    def say(self, message: str) -> None: ...
    def planned(self, plan: Plan) -> None: ...
    def before(self, run: PlannedRun, number: int, total: int, remaining_s: float) -> None: ...
    def after(self, record: Record) -> None: ...


@cache
def _graph(model: str, options: tuple[tuple[str, Any], ...]) -> Graph:
    return load_workload(model, dict(options))


def graph_of(model: str, options: Mapping[str, Any]) -> Graph:
    """The graph of a model of ours; built once a process."""
    try:
        return _graph(model, tuple(sorted(options.items())))
    except TypeError:  # an option that is a list cannot be a key
        return load_workload(model, dict(options))


def workloads_of(study: Study) -> Callable[[str, Mapping[str, Any]], Workload]:
    """A function from model (or script) and options to what is trained. The study's own files are read once."""
    scripts = study.axes["workload.script"] != (None,)
    read: dict[str, Workload] = {}

    def from_file(name: str, options: Mapping[str, Any]) -> Workload:
        if scripts:
            return read_program(study.folder / name, options.get("arguments", ""), study.one("workload.files"))
        return load_collective(options) if name == COLLECTIVE else load_workload(name, options, study.folder)

    def workload_of(name: str, options: Mapping[str, Any]) -> Workload:
        if name in MODELS and not scripts:
            return graph_of(name, options)
        key = json.dumps([name, dict(options)], sort_keys=True)
        if key not in read:
            read[key] = from_file(name, options)
        return read[key]

    return workload_of


@dataclass(slots=True)
class Workbench:
    """One study on this machine."""

    study: Study
    folder: Path
    """The store's folder."""
    proving: bool = False
    """Whether a fairness proof is wanted whatever the study compares; with two frameworks it always is."""
    frameworks: dict[str, Framework] = field(init=False)
    environments: dict[str, Environment] = field(init=False)
    site: Site = field(init=False)
    workload: Callable[[str, Mapping[str, Any]], Workload] = field(init=False)
    """model and options → what is trained, as the files of the study say when they are first read."""
    broken: dict[str, str] = field(init=False, default_factory=dict)
    """framework → why its environment could not be built in this session."""

    def __post_init__(self) -> None:
        source = self.study.source
        names: Sequence[str] = self.study.axes["framework.name"]
        self.frameworks = {name: load_framework(name, f"{source}: framework.name") for name in names}
        trained = not self.study.of_collectives
        if trained and sum(framework.capabilities.trains for framework in self.frameworks.values()) > 1:
            self.proving = True
        if self.proving:
            self.frameworks.setdefault(REFERENCE, load_framework(REFERENCE))
        self.environments = {
            name: environment_of(
                framework,
                interpreter=self.study.interpreters.get(name),
                environment=self.study.environments.get(name),
                where=f"{source}: framework",
            )
            for name, framework in self.frameworks.items()
        }
        self.workload = workloads_of(self.study)
        self.site = load_site(self.study.one("cluster.site"), f"{source}: cluster.site")

    def catalog(self) -> Catalog:
        """What the planning stage wants to know about the world."""
        unavailable = dict(self.broken)
        for name, environment in self.environments.items():
            state = environment.state()
            if state.state == "unavailable":
                unavailable[name] = f"environment {environment.name}: {state.reason}; {state.fix}"
        return Catalog(
            capabilities={name: framework.capabilities for name, framework in self.frameworks.items()},
            environments={name: (e.name, e.lock) for name, e in self.environments.items()},
            unavailable=unavailable,
            site=self.site.limits(),
            workload=self.workload,
        )

    def trials(self) -> list[Trial]:
        """Every trial of the study that can run here."""
        return [e.trial for e in expand(self.study, self.catalog()) if e.refusal is None]

    def plan(
        self,
        *,
        retry: frozenset[str] = frozenset(),
        repeats: Mapping[str, int] | None = None,
        only_proof: bool = False,
    ) -> Plan:
        """The runs still to do, the skips with reasons, the estimate."""
        catalog = self.catalog()
        expanded = expand(self.study, catalog)
        proofs = runs_of(self.proof_cases([e.trial for e in expanded if e.refusal is None], catalog))
        proofs = [trial for trial in proofs if trial.framework.name not in catalog.unavailable]
        ids = [trial.id for trial in (*proofs, *(e.trial for e in expanded))]
        done: Mapping[tuple[str, int], str] = {}
        attempts: Mapping[tuple[str, int], int] = {}
        seen: Mapping[str, float] = {}
        if (store := self.existing_store()) is not None:
            with store:
                here = machine()["id"]
                limits = {trial.id: trial.limits for trial in (*proofs, *(e.trial for e in expanded))}
                worker = worker_digest()
                attempted = store.attempted(here)
                attempts = {(run.trial_id, run.repeat): run.attempt + 1 for run in sorted(attempted, key=_by_attempt)}
                last = {(run.trial_id, run.repeat): run for run in sorted(attempted, key=_by_attempt)}
                done = {
                    key: run.outcome.value
                    for key, run in last.items()
                    # What other limits have ended says nothing about these, nor what other adapters have shown.
                    if (run.outcome is OutcomeKind.OK or run.limits == limits.get(run.trial_id))
                    and (run.kind != PROOF or run.worker == worker)
                }
                seen = store.recent_elapsed(ids, here)
        estimate = make_estimate(catalog.capabilities, self.workload, seen)
        return schedule(
            self.study,
            [e for e in expanded if e.refusal or not only_proof],
            estimate=estimate,
            done=done,
            attempts=attempts,
            retry=retry,
            repeats=repeats,
            proofs=proofs,
        )

    def proof_cases(self, trials: Sequence[Trial], catalog: Catalog) -> list[ProofCase]:
        """What shows that these trials compute the same, where the study needs it."""
        return cases_of(trials, catalog) if self.proving else []

    def fairness(self, records: Sequence[Record] = (), more: Sequence[Trial] = ()) -> Fairness:
        """The fairness proof, as far as it is recorded: of the adapters that made these records, or of today's.

        Args:
            records: what is to be compared.
            more: trials beside those of the study.
        """
        catalog = self.catalog()
        expanded = expand(self.study, catalog, to_run=False)
        cases = self.proof_cases([*(e.trial for e in expanded if e.refusal is None), *more], catalog)
        if (store := self.existing_store()) is None:
            return prove(cases, {}, catalog.site.proves_on)
        with store:
            recorded = store.records(trial_ids=[trial.id for trial in runs_of(cases)])
        workers = {record.inputs.get("worker") for record in records if record.ok} or {worker_digest()}
        recorded = [record for record in recorded if record.inputs.get("worker") in workers]
        # The latest, unless it failed where an earlier one, on another machine perhaps, did not.
        latest = sorted(last_attempts(recorded), key=lambda record: (record.ok, record.started))
        return prove(cases, {record.trial.id: record for record in latest}, catalog.site.proves_on)

    def existing_store(self) -> Store | None:
        """The store, if there is one already."""
        return Store.open(self.folder, create=False) if Store.exists(self.folder) else None

    def records(self, *, run_for: str | None = None) -> list[Record]:
        """What is recorded of the study's trials: the last attempt of each repeat.

        Args:
            run_for: further measurements that were made for a study of this name: what a campaign proposed is no trial
                of the study itself.
        """
        ids = [e.trial.id for e in expand(self.study, self.catalog(), to_run=False)]
        if (store := self.existing_store()) is None:
            return []
        with store:
            found = store.records(trial_ids=ids)
            if run_for is not None:
                further = [record for record in store.records(study=run_for) if record.kind == MEASUREMENT]
                known = set(ids)
                found += [record for record in further if record.trial.id not in known]
            return last_attempts(found)

    def comparison(self, *, margin: float = MARGIN, across_machines: bool = False) -> Comparison:
        """All trials of the study compared, those without a record and those that cannot run included."""
        expanded = expand(self.study, self.catalog(), to_run=False)
        records = self.records()
        return compare(
            records,
            trials=[e.trial for e in expanded],
            skipped={e.trial.id: e.refusal for e in expanded if e.refusal},
            margin=margin,
            across_machines=across_machines,
            fairness=self.fairness(records),
        )

    def collectives(self, comparison: Comparison) -> Collectives:
        """The tables behind the rows of a comparison of collectives by themselves."""
        trials = [e.trial for e in expand(self.study, self.catalog(), to_run=False)]
        return tables_of(gather(self.records(), trials), comparison)

    def build(self, watcher: Watcher) -> None:
        """Build the environments that are not ready. One that fails takes only its own framework with it."""
        for name, environment in self.environments.items():
            state = examined(environment)
            if state.state in {"ready", "unavailable"}:
                continue
            watcher.say(f"environment {environment.name} is {state.state}; building it ({state.reason or 'first use'})")
            try:
                environment.create(watcher.say)
            except EnvironmentBuildError as error:
                self.broken[name] = error.message
                watcher.say(f"environment {environment.name} could not be built: {error.message}")
                if error.hint:
                    watcher.say(f"  {error.hint}")

    def run(
        self,
        watcher: Watcher | None = None,
        *,
        retry_failed: bool = False,
        again: bool = False,
        only_proof: bool = False,
        propose: Callable[[Sequence[Record]], Proposal | None] | None = None,
        budget: Budget | None = None,
    ) -> list[Record]:
        """Run what is not recorded yet, then what `propose` asks for. New records, each stored before the next run.

        Args:
            again: add the study's repeats to those that are recorded, instead of only filling what is missing.
            only_proof: run the fairness proof and nothing that is measured.
        """
        watcher = watcher or Silent()
        retry = FAILED if retry_failed else frozenset()
        # Wrong studies are refused before anybody waits for the machine.
        self.plan(retry=retry)
        with machine_lock(watcher.say), Store.open(self.folder, create=True) as store:
            # Under the lock: compiling and unpacking would disturb whoever measures.
            self.build(watcher)
            repeats = self._repeats_again() if again else None
            plan = self.plan(retry=retry, repeats=repeats, only_proof=only_proof)
            watcher.planned(plan)
            bench = self.bench(store)
            new = self.execute(plan, store, bench, watcher)
            if propose is not None:

                def go_on(proposal: Proposal) -> list[Record]:
                    watcher.say(proposal.reason)
                    same = proposal.study is self.study
                    other = self if same else Workbench(proposal.study, self.folder, proving=self.proving)
                    other.build(watcher)
                    plan = other.plan(repeats=proposal.repeats or None)
                    return other.execute(plan, store, other.bench(store), watcher)

                before = [r for r in self.records() if r.machine["id"] == bench.machine["id"]]
                new += campaign(propose, go_on, records=before, budget=budget)[len(before) :]
        return new

    def _repeats_again(self) -> dict[str, int]:
        recorded: dict[str, int] = {}
        here = machine()["id"]
        for record in self.records():
            if record.machine["id"] == here:
                recorded[record.trial.id] = max(recorded.get(record.trial.id, 0), record.repeat + 1)
        return {
            trial.id: recorded.get(trial.id, 0) + self.study.repeats_of(trial.workload.model).minimum
            for trial in self.trials()
        }

    def bench(self, store: Store) -> Bench:
        """All that runs need, with what killed hosts left behind cleared away."""
        facts = machine()
        # By machine: a store on a shared disk may serve several at once.
        scratch = self.folder.resolve() / "scratch" / facts["id"]
        # What a host that was killed left behind: its processes, if any outlived it, then its files.
        self.site.sweep(scratch)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        store.sweep()
        return Bench(
            site=self.site,
            frameworks=self.frameworks,
            environments=self.environments,
            workload=self.workload,
            cache=usable_cache(),
            scratch=scratch,
            machine=facts,
            equipment=Equipment(self.site),
        )

    def execute(self, plan: Plan, store: Store, bench: Bench, watcher: Watcher) -> list[Record]:
        """Run a plan, each record stored before the next run starts."""
        records: list[Record] = []
        measured: dict[str, float] = {}
        try:
            for index, planned in enumerate(plan.runs):
                remaining = sum(measured.get(run.trial.id, run.estimate_s) for run in plan.runs[index:])
                watcher.before(planned, index + 1, len(plan.runs), remaining)
                record = run_once(planned, self.study.name, replace(bench, site=self._site_of(planned.trial)))
                store.add(record)
                clear_scratch(planned, bench)
                measured[planned.trial.id] = record.elapsed_s
                records.append(record)
                watcher.after(record)
        finally:
            bench.site.leave()
        return records

    def _site_of(self, trial: Trial) -> Site:
        """The study's site, or the one on which its proof is made."""
        return self.site if trial.cluster.site == self.site.name else load_site(trial.cluster.site)


def examined(environment: Environment) -> EnvironmentState:
    """Its state, with a look at every file where it claims to be ready."""
    state = environment.state()
    if state.state != "ready":
        return state
    try:
        environment.verify()
    except EnvironmentBuildError as error:
        return replace(state, state="broken", reason=error.message, fix=error.hint)
    return state


def usable_cache() -> Path:
    """The cache folder, made if it is not there.

    Raises:
        EnvironmentBuildError: it cannot be made.
    """
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentBuildError(
            f"{root}: the cache cannot be made: {error.strerror}",
            hint="choose another: export PACELINE_CACHE=/some/folder",
        ) from None
    return root


def environment_of(
    framework: Framework, *, interpreter: str | None = None, environment: str | None = None, where: str = "framework"
) -> Environment:
    """Where a framework lives: the user's interpreter, a pinned environment, or the host's own interpreter."""
    if interpreter is not None:
        return ExistingInterpreter(interpreter, package=framework.package, where=f"{where}.interpreter")
    if environment is not None:
        return load_environment(environment, f"{where}.environment")
    if framework.environment is not None:
        return load_environment(framework.environment)
    # What imports packages of the user's is another environment with each of them; what imports none is not.
    return ExistingInterpreter(sys.executable) if framework.imports_packages else HostInterpreter()


def _by_attempt(run: Attempt) -> int:
    return run.attempt


def last_attempts(records: Sequence[Record]) -> list[Record]:
    """Of each repeat on each machine the last attempt."""
    latest: dict[tuple[str, str, int], Record] = {}
    for record in records:
        key = (record.trial.id, record.machine["id"], record.repeat)
        if key not in latest or record.attempt > latest[key].attempt:
            latest[key] = record
    return sorted(latest.values(), key=lambda r: r.started)


def open_store(folder: Path) -> Store:
    """A store that must be there.

    Raises:
        PacelineError: nothing was recorded there yet.
    """
    if not Store.exists(folder):
        raise PacelineError(
            f"{folder}: no store here",
            hint="record something first: paceline run STUDY   or name it: --store DIR",
        )
    return Store.open(folder, create=False)
