"""One run: starts fresh processes on a site, waits for their end, ends what is left, and makes a record of it.

What goes wrong with the processes is an outcome in the record, and not an exception.
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
from paceline.record.machines import Machine, MachineFacts, machines_of
from paceline.record.output import output_table
from paceline.run import host_state
from paceline.run.disturbance import disturbing
from paceline.run.equip import Equipment
from paceline.run.events import DoneEvent, HelloEvent, RankEvents, ReadyEvent, log_end, log_tail, read_events
from paceline.run.host_state import MachineMoment, RunState
from paceline.run.inputs import prepare_inputs
from paceline.run.meter import Meter
from paceline.run.outcome import judge, naming_missing_file
from paceline.run.series import layers_table, samples_table
from paceline.run.supervise import Ending, supervise
from paceline.run.worker_source import worker_digest, worker_folder
from paceline.sites import Site
from paceline.workloads import Program, Workload

PASSED_ON = ("HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""Our variables that a measured process sees; no others, so that no stray OMP_NUM_THREADS changes a measurement."""
MEMORY_SHARE = 0.9
"""Part of the free memory that the workers of a run may take together; a run that takes more is ended."""
PORT_TAKEN = "Address already in use"
TRACEBACK_LINES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Everything a run needs that is not its trial."""

    site: Site
    frameworks: Mapping[str, Framework]
    environments: Mapping[str, Environment]
    """Framework → the environment in which it is installed."""
    workload: Callable[[str, Mapping[str, object]], Workload]
    """From a model and its options to what is trained."""
    cache: Path
    """Folder of weights, data and the worker's source."""
    scratch: Path
    """Folder in which runs under way keep their files."""
    machine: MachineFacts
    """Facts of the machine that measures."""
    equipment: Equipment
    """Which environments the hosts of the site have."""


def run_once(planned: PlannedRun, study: str, bench: Bench) -> Record:
    """Run one repeat of one trial in fresh processes; once again if a port was taken, which the record then tells."""
    record = _attempt(planned, study, bench)
    text = " ".join([record.outcome.reason or "", *record.outcome.log_tail])
    if record.ok or PORT_TAKEN not in text:
        return record
    again = _attempt(planned, study, bench)
    doubt = Doubt(code="port-retry", message="a port was taken by another process; the run was started again once")
    return replace(again, doubts=(*again.doubts, doubt))


def _attempt(planned: PlannedRun, study: str, bench: Bench) -> Record:
    """Run it once. What goes wrong with the run, its adapter or its site is its outcome: the next run can start."""
    trial = planned.trial
    clear_scratch(planned, bench)  # of a first attempt whose port was taken
    started, clock = time.time(), time.monotonic()
    facts = _Facts(state={"before": host_state.moment()})
    try:
        _carry_out(planned, bench, facts)
    except PacelineError as error:
        reason = f"{error.message}; {error.hint}" if error.hint else error.message
        facts.outcome = Outcome(kind=OutcomeKind.UNAVAILABLE, stage="before the start", reason=reason)
    except Exception as error:  # noqa: BLE001  a broken adapter must not take the other trials with it
        lines = traceback.format_exc().splitlines()[-TRACEBACK_LINES:]
        facts.outcome = Outcome(
            kind=OutcomeKind.FAILED,
            stage="on the host",
            reason=f"{type(error).__name__}: {error}",
            log_tail=tuple(lines),
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
    # The times of a proof mean nothing, so there is nothing to check about them.
    return record if record.kind == PROOF else replace(record, doubts=(*record.doubts, *check(record)))


def clear_scratch(planned: PlannedRun, bench: Bench) -> None:
    """Remove the files of a run; to be called when its record is stored, and not before."""
    shutil.rmtree(_scratch(planned, bench), ignore_errors=True)


def _scratch(planned: PlannedRun, bench: Bench) -> Path:
    return bench.scratch / f"{planned.run_id}.{os.getpid()}"


@dataclass(slots=True, kw_only=True)
class _Facts:
    """What becomes known of a run while it is carried out."""

    state: RunState
    environment: Mapping[str, object] = field(default_factory=dict)
    inputs: Mapping[str, object] = field(default_factory=dict)
    resources: Mapping[str, object] = field(default_factory=dict)
    hosts: tuple[Mapping[str, object], ...] = ()
    machines: tuple[Machine, ...] = ()
    ranks: tuple[Rank, ...] = ()
    samples: pa.Table | None = None
    layers: pa.Table | None = None
    meter: pa.Table | None = None
    output: pa.Table | None = None
    doubts: list[Doubt] = field(default_factory=list)
    outcome: Outcome | None = None


def _carry_out(planned: PlannedRun, bench: Bench, facts: _Facts) -> None:
    """Prepare the run, start its processes, supervise and stop them, fetch what they wrote, and judge it."""
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
            [host.name for host in topology.hosts], trial.cluster.site, bench.machine, _told_by_hosts(site)
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
        by_host = [sum(used[p.name] for p in processes if p.host == host) for host in range(len(topology.hosts))]
        facts.state.update(during(by_host))
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
) -> tuple[Ending, Meter, Callable[[Sequence[float]], RunState]]:
    """Start all processes, wait for their end, and end what is left. In between we only wait and meter.

    Returns how they ended, the meter, and how busy the machines were as a function of the CPU seconds of the workers of
    each host, which become known later.
    """
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


def _told_by_hosts(site: Site) -> Sequence[Mapping[str, object]]:
    """What hosts that are other machines tell of themselves; nothing where all hosts are this machine."""
    told = site.facts().get("hosts", ())
    assert isinstance(told, Sequence), 'a site tells "hosts" as a list'
    return told


def _memory_share(trial: Trial, site: Site, before: MachineMoment) -> float:
    """Memory that each rank may take: a part of the smallest host, or of what is free on this machine."""
    if by_host := site.memory_bytes():
        return min(by_host) * MEMORY_SHARE * trial.cluster.hosts / trial.ranks
    return float(before["memory_available_bytes"]) * MEMORY_SHARE / trial.ranks


def variables_of(
    environment: Environment, framework_env: Mapping[str, str], job_path: Path, cache: Path, rank: int | None = None
) -> dict[str, str]:
    """All variables that a measured process sees: some of ours, those of its environment, and its framework's."""
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ours = {"PACELINE_JOB": str(job_path), "PYTHONPATH": str(worker_folder(cache)), "PYTHONNOUSERSITE": "1"}
    if rank is not None:
        ours["PACELINE_RANK"] = str(rank)
    return {**passed_on, **environment.variables(), **framework_env, **ours}


def _cpu_s_of(processes: Sequence[Process], meter: Meter, events: Sequence[RankEvents]) -> dict[str, float]:
    """CPU seconds of each process. A rank counts its own too: the meter does not see what it used last."""
    own = {f"worker{e.rank}": float(e.done.cpu_s) for e in events if e.done and e.done.cpu_s is not None}
    return {process.name: max(meter.cpu_s(process.name), own.get(process.name, 0.0)) for process in processes}


def _ranks(
    processes: Sequence[Process], topology: Topology, events: Sequence[RankEvents], ending: Ending
) -> tuple[Rank, ...]:
    by_rank = {process.rank: process for process in processes if process.rank is not None}
    return tuple(_rank(e, by_rank[e.rank], topology, ending.exit_codes.get(e.rank)) for e in events)


def _rank(events: RankEvents, process: Process, topology: Topology, exit_code: int | None) -> Rank:
    hello, ready, done = events.hello or HelloEvent(), events.ready or ReadyEvent(), events.done or DoneEvent()
    return Rank(
        rank=events.rank,
        host=topology.hosts[process.host].name,
        cores=process.cores,
        exit_code=exit_code,
        framework_version=ready.framework_version,
        python=hello.python,
        parameters=ready.parameters,
        setup_s=ready.setup_s,
        peak_rss_bytes=done.peak_rss_bytes,
        cpu_s=done.cpu_s,
        clock_origin_s=events.blocks[0].origin_unix_s if events.blocks else None,
        facts={
            **events.facts,
            **({"evidence": events.evidence} if events.evidence else {}),
            **({"roundings": events.roundings} if events.roundings else {}),
            "variables": dict(process.env),
        },
        notes=tuple(events.notes),
    )
