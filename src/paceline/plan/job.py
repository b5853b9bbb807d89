"""The job file of a run: everything that its ranks need to know, as JSON. Pure; the caller passes the paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial

JOB_VERSION = 1
"""Equal to paceline_worker.protocol.VERSION, which a contract test checks."""


def make_job(
    trial: Trial,
    *,
    run_id: str,
    repeat: int,
    module: str,
    graph: Mapping[str, object] | None,
    program: Mapping[str, object] | None = None,
    collective: Mapping[str, object] | None = None,
    topology: Topology,
    processes: Sequence[Process],
    weights: Mapping[str, str] | None,
    data_index: str | None,
    drops_out: bool = False,
    tell_at_step: int | None = None,
) -> dict[str, object]:
    """The job as the worker reads it (paceline_worker.protocol.Job documents each field)."""
    workers = [p for p in processes if p.rank is not None]
    per_host: dict[int, int] = {}
    described = []
    for worker in sorted(workers, key=lambda p: p.rank or 0):
        host = topology.hosts[worker.host]
        local_rank = per_host.get(worker.host, 0)
        per_host[worker.host] = local_rank + 1
        described.append(
            {
                "rank": worker.rank,
                "host": host.name,
                "address": host.address,
                "interface": host.interface,
                "cores": list(worker.cores),
                "local_rank": local_rank,
                "ports": list(host.ports),
            }
        )
    return {
        "version": JOB_VERSION,
        "run_id": run_id,
        "repeat": repeat,
        "framework": {
            "name": trial.framework.name,
            "module": module,
            "strategy": trial.framework.strategy,
            "knobs": dict(trial.framework.knobs),
        },
        "graph": None if graph is None else dict(graph),
        "drops_out": drops_out,
        "program": None if program is None else dict(program),
        "collective": None if collective is None else dict(collective),
        "weights": None if weights is None else dict(weights),
        "input": {
            "kind": trial.workload.input,
            "index": data_index,
            "loader_workers": trial.workload.loader_workers,
        },
        "batch_per_worker": trial.workload.batch_per_worker,
        "seed": trial.workload.seed,
        "world_size": trial.ranks,
        "devices": trial.workers // trial.ranks,
        "processes": described,
        "rendezvous": {"address": topology.hosts[0].address, "ports": list(topology.hosts[0].ports)},
        "threads": trial.cluster.threads_per_worker,
        "device": trial.cluster.device,
        "measure": {
            "warmup_steps": trial.measure.warmup_steps,
            "steps": trial.measure.steps,
            "layers": trial.measure.layers,
            "evidence": trial.measure.evidence,
        },
        "tell_at_step": tell_at_step,
    }
