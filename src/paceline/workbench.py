"""The only class that acts: it builds environments, plans, and runs a study under the machine's lock.

It holds no logic of a stage: it passes what is known (`Snapshot`) to the planning stage and runs the plan. The command
line and the Python API are built on it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from paceline.compare import more_repeats
from paceline.environments import examined, usable_cache
from paceline.errors import EnvironmentBuildError
from paceline.plan import Plan, PlannedRun, Proposal, Trial
from paceline.plan.expand import require_cores
from paceline.prepared import PreparedStudy
from paceline.record import OutcomeKind, Record, Store
from paceline.record.failures import would_fail_again
from paceline.record.reading import Reading
from paceline.run import Bench, Budget, Equipment, campaign, clear_scratch, machine_lock, run_once
from paceline.run.campaign import Proposer
from paceline.run.host_state import machine
from paceline.sites import Site, load_site
from paceline.snapshot import Snapshot
from paceline.spec import Study

FAILED = frozenset(kind.value for kind in OutcomeKind if kind is not OutcomeKind.OK)


class Watcher(Protocol):
    """Is informed between runs, and never during a run."""

    def say(self, message: str) -> None: ...
    def planned(self, plan: Plan) -> None: ...
    def before(self, run: PlannedRun, number: int, total: int, remaining_s: float) -> None: ...
    def after(self, record: Record) -> None: ...


class Silent:
    """A watcher that ignores everything."""

    def say(self, message: str) -> None: ...
    def planned(self, plan: Plan) -> None: ...
    def before(self, run: PlannedRun, number: int, total: int, remaining_s: float) -> None: ...
    def after(self, record: Record) -> None: ...


class Workbench:
    """One study on this machine, and the store that keeps its runs."""

    def __init__(self, study: Study, folder: Path, *, proving: bool = False) -> None:
        """Look up everything that the study names.

        Args:
            folder: the folder of the store.
            proving: require a fairness proof, whatever the study compares.
        """
        self.prepared = PreparedStudy.of(study, proving=proving)
        self.folder = folder
        self._reading = Reading(folder)

    def snapshot(self) -> Snapshot:
        """What is known at this moment. Samples that this workbench has read or recorded are not read again."""
        return Snapshot(prepared=self.prepared, reading=self._reading)

    def build(self, watcher: Watcher) -> None:
        """Build the environments that are not ready. A failed build excludes only its own framework."""
        broken: dict[str, str] = {}
        for name, environment in self.prepared.environments.items():
            state = examined(environment)
            if state.state in {"ready", "unavailable"}:
                continue
            watcher.say(f"environment {environment.name} is {state.state}; building it ({state.reason or 'first use'})")
            try:
                environment.create(watcher.say)
            except EnvironmentBuildError as error:
                broken[name] = error.message
                watcher.say(f"environment {environment.name} could not be built: {error.message}")
                if error.hint:
                    watcher.say(f"  {error.hint}")
        self.prepared = self.prepared.without(broken)

    def run(
        self,
        watcher: Watcher | None = None,
        *,
        retry_failed: bool = False,
        again: bool = False,
        only_proof: bool = False,
        propose: Proposer | None = None,
        budget: Budget | None = None,
    ) -> list[Record]:
        """Run what is not recorded yet, then what `propose` asks for, and return the new records.

        Each record is stored before the next run starts.

        Args:
            again: add the study's repeats to the recorded ones, instead of running only missing ones.
            only_proof: run the fairness proof and no measurement.
        """
        watcher = watcher or Silent()
        # Invalid studies are refused before the user waits for the machine's lock.
        require_cores(self.prepared.study, self.prepared.expanded)
        with machine_lock(watcher.say), Store.open(self.folder, create=True) as store:
            # Under the lock, because compiling and unpacking would disturb other measurements.
            self.build(watcher)
            plan = self.snapshot().plan_for(
                retry=FAILED if retry_failed else frozenset(), again=again, only_proof=only_proof
            )
            watcher.planned(plan)
            bench = self._bench(store)
            new = self._execute(plan, store, bench, watcher)
            if propose is not None:
                here = [record for record in self.snapshot().records if record.machine["id"] == bench.machine["id"]]

                def go_on(proposal: Proposal) -> list[Record]:
                    watcher.say(proposal.reason)
                    return self.beside(proposal.study).go_on(proposal, store, watcher)

                new += campaign(propose, go_on, records=here, budget=budget)[len(here) :]
        return new

    def beside(self, study: Study) -> Workbench:
        """The workbench of a study that a campaign proposes; it shares the records that were read."""
        if study is self.prepared.study:
            return self
        bench = Workbench(study, self.folder, proving=self.prepared.proving)
        bench._reading = self._reading
        return bench

    def go_on(self, proposal: Proposal, store: Store, watcher: Watcher) -> list[Record]:
        """Run a campaign's proposal for this study; the caller holds the machine's lock."""
        self.build(watcher)
        plan = self.snapshot().plan_for(repeats=proposal.repeats or None)
        return self._execute(plan, store, self._bench(store), watcher)

    def _bench(self, store: Store) -> Bench:
        """Everything that runs need, after the leftovers of killed hosts are removed."""
        facts = machine()
        # One folder per machine, because several machines may use a store on a shared disk at once.
        scratch = self.folder.resolve() / "scratch" / facts["id"]
        # Leftovers of a killed host: first its processes, if any are still alive, then its files.
        self.prepared.site.sweep(scratch)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        store.sweep()
        return Bench(
            site=self.prepared.site,
            frameworks=self.prepared.frameworks,
            environments=self.prepared.environments,
            workload=self.prepared.catalog.workload,
            cache=usable_cache(),
            scratch=scratch,
            machine=facts,
            equipment=Equipment(self.prepared.site),
        )

    def _execute(self, plan: Plan, store: Store, bench: Bench, watcher: Watcher) -> list[Record]:
        """Run a plan, each record stored before the next run starts."""
        records: list[Record] = []
        measured: dict[str, float] = {}
        hopeless: set[str] = set()
        try:
            for index, planned in enumerate(plan.runs):
                if planned.trial.id in hopeless:
                    continue
                remaining = sum(measured.get(run.trial.id, run.estimate_s) for run in plan.runs[index:])
                watcher.before(planned, index + 1, len(plan.runs), remaining)
                record = run_once(planned, self.prepared.study.name, replace(bench, site=self._site_of(planned.trial)))
                store.add(record)
                self._reading.add([record])
                clear_scratch(planned, bench)
                measured[planned.trial.id] = record.elapsed_s
                records.append(record)
                watcher.after(record)
                if would_fail_again(record.outcome, record.repeat):
                    hopeless.add(planned.trial.id)
                    if any(run.trial.id == planned.trial.id for run in plan.runs[index + 1 :]):
                        watcher.say("        its other repeats would fail the same way and are not started")
        finally:
            bench.site.leave()
        return records

    def _site_of(self, trial: Trial) -> Site:
        """The study's site, or the site on which its fairness proof runs."""
        site = self.prepared.site
        return site if trial.cluster.site == site.name else load_site(trial.cluster.site)


def adaptive_repeats(bench: Workbench) -> Proposer | None:
    """A proposer of more repeats for trials whose interval is too wide; None if the study fixes the number."""
    study = bench.prepared.study
    until = study.repeats.until
    if until is None:
        return None

    def propose(records: Sequence[Record]) -> Proposal | None:
        repeats = more_repeats(records, bench.prepared.trials, study.repeats)
        if not repeats:
            return None
        reason = f"{len(repeats)} trial(s) are not yet known to ±{until:.1%}"
        return Proposal(study=study, repeats=repeats, reason=reason)

    return propose
