"""One run: fresh processes on a site, supervised, ended for sure, turned into a record. The only stage that acts.

Whatever happens to the processes becomes an outcome in the record, not an exception.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from paceline._version import __version__
from paceline.environments import Environment
from paceline.errors import PacelineError
from paceline.frameworks import Framework
from paceline.plan.job import make_job
from paceline.plan.process import Process, Topology
from paceline.plan.schedule import PlannedRun
from paceline.plan.trial import Trial
from paceline.record import MEASUREMENT, PROOF, Doubt, Outcome, OutcomeKind, Rank, Record, check
from paceline.record.machines import Machine, machines_of
from paceline.record.output import output_table
from paceline.run import host_state
from paceline.run.disturbance import disturbing
from paceline.run.equip import Equipment
from paceline.run.events import RankEvents, layers_table, log_end, log_tail, read_events, samples_table
from paceline.run.inputs import prepare_inputs
from paceline.run.meter import Meter
from paceline.run.outcome import judge, naming_missing_file
from paceline.run.supervise import Ending, supervise
from paceline.run.worker_source import worker_digest, worker_folder
from paceline.sites import Site
from paceline.workloads import Program, Workload

PASSED_ON = ("HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""Variables of ours that a measured process may see; nothing else leaks in, so no stray OMP_NUM_THREADS either."""
MEMORY_SHARE = 0.9
"""Part of the free memory that the workers of a run may take together: a hog ends itself, not the machine."""
PORT_TAKEN = "Address already in use"
TRACEBACK_LINES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Everything a run needs that is not its trial."""

    site: Site
    frameworks: Mapping[str, Framework]
    environments: Mapping[str, Environment]
    """framework → where it lives."""
    workload: Callable[[str, Mapping[str, Any]], Workload]
    """model and options → what is trained."""
    cache: Path
    """Weights, data and the worker's source."""
    scratch: Path
    """Where runs under way keep their files."""
    machine: Mapping[str, Any]
    """Facts of the machine that measures."""
    equipment: Equipment
    """Which environments its hosts have."""


def run_once(planned: PlannedRun, study: str, bench: Bench) -> Record:
    """Run one repeat of one trial in fresh processes. A taken port is retried once, and the record says so."""
    record = _attempt(planned, study, bench)
    text = " ".join([record.outcome.reason or "", *record.outcome.log_tail])
    if record.ok or PORT_TAKEN not in text:
        return record
    again = _attempt(planned, study, bench)
    doubt = Doubt(code="port-retry", message="a port was taken by another process; the run was started again once")
    return replace(again, doubts=(*again.doubts, doubt))


def _attempt(planned: PlannedRun, study: str, bench: Bench) -> Record:
    """Whatever goes wrong with this run, its adapter or its site is this run's outcome, and the next one starts."""
    trial = planned.trial
    clear_scratch(planned, bench)  # of a first attempt that met a taken port
    started, clock = time.time(), time.monotonic()
    facts = _Facts(state={"before": host_state.moment()})
    try:
        _carry_out(planned, bench, facts)
    except PacelineError as error:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
        facts.outcome = Outcome(kind=OutcomeKind.UNAVAILABLE, stage="before the start", reason=reason)
    except Exception as error:  # noqa: BLE001  a broken adapter must not take the other trials with it
        told = traceback.format_exc().splitlines()[-TRACEBACK_LINES:]
        facts.outcome = Outcome(
            kind=OutcomeKind.FAILED,
            stage="on the host",
            reason=f"{type(error).__name__}: {error}",
            log_tail=tuple(told),
        )
    assert facts.outcome is not None
    facts.state["after"] = host_state.moment()
    record = Record(
        run_id=planned.run_id,
        trial=trial,
        study=study,
        repeat=planned.repeat,
        attempt=planned.attempt,
        started=started,
        elapsed_s=time.monotonic() - clock,
        outcome=facts.outcome,
        ranks=facts.ranks,
        machine=bench.machine,
        state=facts.state,
        environment=facts.environment,
        resources=facts.resources,
        inputs=facts.inputs,
        doubts=tuple(facts.doubts),
        paceline=__version__,
        hosts=facts.hosts,
        machines=facts.machines,
        kind=PROOF if trial.measure.evidence else MEASUREMENT,
        phases_by=bench.frameworks[trial.framework.name].capabilities.phases_by,
        samples=facts.samples,
        layers=facts.layers,
        meter=facts.meter,
        output=facts.output,
    )
    # A proof's times mean nothing, so there is nothing to doubt about them.
    return record if record.kind == PROOF else replace(record, doubts=(*record.doubts, *check(record)))


def clear_scratch(planned: PlannedRun, bench: Bench) -> None:
    """Remove the files of a run, once its record is stored and not before."""
    shutil.rmtree(_scratch(planned, bench), ignore_errors=True)


def _scratch(planned: PlannedRun, bench: Bench) -> Path:
    return bench.scratch / f"{planned.run_id}.{os.getpid()}"


@dataclass(slots=True, kw_only=True)
class _Facts:
    """What is found out along the way."""

    state: dict[str, Any]
    environment: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    hosts: tuple[Mapping[str, Any], ...] = ()
    machines: tuple[Machine, ...] = ()
    ranks: tuple[Rank, ...] = ()
    samples: pa.Table | None = None
    layers: pa.Table | None = None
    meter: pa.Table | None = None
    output: pa.Table | None = None
    doubts: list[Doubt] = field(default_factory=list)
    outcome: Outcome | None = None


def _carry_out(planned: PlannedRun, bench: Bench, facts: _Facts) -> None:
    """Prepare, start, supervise, stop, bring home, judge."""
    trial, site = planned.trial, bench.site
    framework = bench.frameworks[trial.framework.name]
    environment = bench.environments[trial.framework.name]
    environment.verify()
    facts.environment = environment.fingerprint()
    workload = bench.workload(trial.workload.model, trial.workload.options)
    folder = _scratch(planned, bench)
    folder.mkdir(parents=True)
    inputs = prepare_inputs(workload, trial, bench.cache, folder, needs_weights=framework.needs_weights)
    facts.inputs = {**inputs.facts, "worker": worker_digest()}
    try:
        topology = site.open(trial.cluster, ports=framework.capabilities.ports(trial))
        facts.hosts = tuple({"name": h.name, "address": h.address, "cores": list(h.cores)} for h in topology.hosts)
        facts.machines = machines_of(
            [host.name for host in topology.hosts], trial.cluster.site, bench.machine, site.facts().get("hosts", ())
        )
        bench.equipment.ensure(environment)
        processes = framework.processes(trial, topology)
        job_path = folder / "job.json"
        job = make_job(
            trial,
            run_id=planned.run_id,
            repeat=planned.repeat,
            module=framework.module_for(workload.kind),
            graph=inputs.graph,
            collective=inputs.collective,
            program=inputs.program,
            topology=topology,
            processes=processes,
            weights=inputs.weights,
            data_index=inputs.data_index,
            drops_out=inputs.drops_out,
            tell_at_step=site.disturbs_at(),
        )
        job_path.write_text(json.dumps(job), encoding="utf-8")
        site.deliver([job_path, worker_folder(bench.cache), *inputs.files])
        ending, meter, during = _supervised(trial, environment, processes, job_path, bench, facts)
        site.fetch(folder)
        host_of = {process.rank: topology.hosts[process.host].name for process in processes}
        ahead, gone = site.clock_offsets(), site.lost_hosts()
        events = [
            read_events(folder / f"events.{rank}.jsonl", rank, ahead.get(host_of[rank], 0.0))
            for rank in range(trial.ranks)
        ]
        lost = {rank: host_of[rank] for rank in range(trial.ranks) if host_of[rank] in gone}
        used = _cpu_s_of(processes, meter, events)
        facts.state |= during([sum(used[p.name] for p in processes if p.host == h) for h in range(len(topology.hosts))])
        facts.state["site"] = site.facts()
    finally:
        site.close()
    facts.resources, facts.meter = meter.report(), meter.table()
    facts.ranks = _ranks(processes, topology, events, ending)
    facts.samples, facts.layers = samples_table(events), layers_table(events)
    logs = {process.name: log_tail(folder / f"{process.name}.log") for process in processes}
    if isinstance(workload, Program):
        facts.output = output_table({p.name: log_end(folder / f"{p.name}.log") for p in processes})
    kills = facts.state["during"]["oom_kills"]
    outcome = judge(trial, ending, events, logs, oom_kills=kills, lost=lost)
    facts.outcome = naming_missing_file(outcome, trial, workload, facts.ranks)


def _supervised(
    trial: Trial, environment: Environment, processes: Sequence[Process], job_path: Path, bench: Bench, facts: _Facts
) -> tuple[Ending, Meter, Callable[[Sequence[float]], dict[str, Any]]]:
    """Start all processes, wait for their end, end them for sure. Nothing but waiting and metering in between."""
    commands = [
        (
            process,
            environment.command(process.argv),
            variables_of(environment, process.env, job_path, bench.cache, process.rank),
        )
        for process in processes
    ]
    limit = trial.limits.memory_bytes or _memory_share(trial, bench.site, facts.state["before"])
    try:
        running = [
            bench.site.start(process, argv=argv, env=env, folder=job_path.parent) for process, argv, env in commands
        ]
        before = host_state.counted(bench.site.counters(), bench.site.own_cpu_s())
        meter = Meter(running, bench.site)
        with disturbing(bench.site, job_path.parent):
            ending = supervise(running, meter, time_limit_s=trial.limits.time_s, memory_limit_bytes=limit)
        after = host_state.counted(bench.site.counters(), bench.site.own_cpu_s())
    finally:
        stuck = bench.site.stop()
    if stuck:
        facts.doubts.append(
            Doubt(
                code="stuck",
                message=f"could not be killed: {', '.join(stuck)}",
                hint="it is stuck in the kernel; a restart of the machine ends it",
            )
        )
    return ending, meter, lambda workers_cpu_s: host_state.during_all(before, after, workers_cpu_s)


def _memory_share(trial: Trial, site: Site, before: Mapping[str, Any]) -> float:
    if there := site.memory_bytes():
        return min(there) * MEMORY_SHARE * trial.cluster.hosts / trial.ranks
    return float(before["memory_available_bytes"]) * MEMORY_SHARE / trial.ranks


def variables_of(
    environment: Environment, framework_env: Mapping[str, str], job_path: Path, cache: Path, rank: int | None = None
) -> dict[str, str]:
    """All that a measured process sees of the outside: an allow-list of ours, its interpreter's, its framework's."""
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ours = {"PACELINE_JOB": str(job_path), "PYTHONPATH": str(worker_folder(cache)), "PYTHONNOUSERSITE": "1"}
    if rank is not None:
        ours["PACELINE_RANK"] = str(rank)
    return {**passed_on, **environment.variables(), **framework_env, **ours}


def _cpu_s_of(processes: Sequence[Process], meter: Meter, events: Sequence[RankEvents]) -> dict[str, float]:
    """CPU seconds by process: a rank's own last count where it gave one (what is gone cannot be metered)."""
    own = {f"worker{e.rank}": float(e.done.get("cpu_s", 0.0)) for e in events}
    return {process.name: max(meter.cpu_s(process.name), own.get(process.name, 0.0)) for process in processes}


def _ranks(
    processes: Sequence[Process], topology: Topology, events: Sequence[RankEvents], ending: Ending
) -> tuple[Rank, ...]:
    by_rank = {process.rank: process for process in processes if process.rank is not None}
    return tuple(
        Rank(
            rank=e.rank,
            host=topology.hosts[by_rank[e.rank].host].name,
            cores=by_rank[e.rank].cores,
            exit_code=ending.exit_codes.get(e.rank),
            framework_version=e.ready.get("framework_version"),
            python=e.hello.get("python"),
            parameters=e.ready.get("parameters"),
            setup_s=e.ready.get("setup_s"),
            peak_rss_bytes=e.done.get("peak_rss_bytes"),
            cpu_s=e.done.get("cpu_s"),
            clock_origin_s=e.blocks[0]["origin_unix_s"] if e.blocks else None,
            facts={
                **e.facts,
                **({"evidence": e.evidence} if e.evidence else {}),
                **({"roundings": e.roundings} if e.roundings else {}),
                "variables": dict(by_rank[e.rank].env),
            },
            notes=tuple(e.notes),
        )
        for e in events
    )
