"""Builds records for tests: the facts of a run that never happened, from a seed, clean unless told otherwise.

make_record()                                  2 workers, 40 measured steps of about 50 ms, all well
make_record(workers=1, step_s=0.1, repeat=3)   what was run and how long it took
make_record(slow_rank=1, slowdown=1.5)         rank 1 computes half as long again
make_record(knobs={"threads": 2}, study="s")   anything of the trial by its own name
make_record(trial=trial, doubts=(…,))          any field of Record replaces what was made
make_trial(model="alexnet", hosts=2)           the trial alone
failed_record(kind="timed_out")                a run that ended badly before its first step
fused_record(seconds={"forward": 0.4})         a framework whose step is one phase, and what it derived of it
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from paceline.plan.trial import ClusterChoice, FrameworkChoice, Limits, MeasureChoice, Trial, WorkloadChoice
from paceline.record.record import Outcome, OutcomeKind, Rank, Record

COMPUTE_SHARES = {"data": 0.02, "forward": 0.36, "backward": 0.54, "update": 0.08}
"""How the computing part of a step is cut into phases."""

MACHINE = {"id": "machine-a", "cpu_model": "Test CPU", "cores": 8, "memory_bytes": 16 * 2**30}
QUIET = {
    "load1": 0.1,
    "cpu_pressure_some_avg10": 0.0,
    "cpu_freq_mhz": [2500.0, 2500.0],
}
STATE = {
    "before": QUIET,
    "during": {"busy_other_fraction": 0.005, "host_cpu_s": 0.01, "host_cpu_fraction": 0.002},
    "after": QUIET,
}


def make_trial(
    *,
    framework: str = "torch",
    strategy: str = "ddp",
    strategy_class: str = "exact",
    knobs: dict[str, Any] | None = None,
    environment: str = "torch",
    lock: str = "sha256:0123",
    simulated: bool = False,
    model: str = "resnet20",
    options: dict[str, Any] | None = None,
    graph: str = "0011223344556677",
    batch: int = 32,
    scaling: str = "weak",
    input: str = "resident",  # noqa: A002 - the trial's own word
    loader_workers: int = 0,
    seed: int = 0,
    site: str = "local",
    hosts: int = 1,
    workers: int = 2,
    threads: int = 1,
    device: str = "cpu",
    network: Any = None,
    oversubscribe: bool = False,
    warmup_steps: int = 3,
    steps: int = 40,
    layers: bool = False,
) -> Trial:
    """`batch` is a worker's, `workers` are those of all hosts together."""
    return Trial(
        workload=WorkloadChoice(
            model=model,
            options=options or {},
            graph=graph,
            batch_per_worker=batch,
            scaling=scaling,
            input=input,
            loader_workers=loader_workers,
            seed=seed,
        ),
        framework=FrameworkChoice(
            name=framework,
            strategy=strategy,
            strategy_class=strategy_class,
            knobs=knobs or {},
            environment=environment,
            lock=lock,
            simulated=simulated,
        ),
        cluster=ClusterChoice(
            site=site,
            hosts=hosts,
            workers_per_host=workers // hosts,
            threads_per_worker=threads,
            device=device,
            network=network,
            oversubscribe=oversubscribe,
        ),
        measure=MeasureChoice(warmup_steps=warmup_steps, steps=steps, layers=layers),
        limits=Limits(time_s=600.0, memory_bytes=None),
    )


def make_samples(
    trial: Trial,
    *,
    step_s: float = 0.05,
    transfer_s: float | None = None,
    jitter: float = 0.01,
    trend: float = 0.0,
    slow_rank: int | None = None,
    slowdown: float = 1.0,
    random_seed: int = 1,
) -> pa.Table:
    """Raw samples of synchronous ranks: each computes, the slowest is waited for, then the exchange.

    Args:
        step_s: mean step time without a slow rank.
        transfer_s: time of the exchange itself; default a fifth of the step, none with one worker.
        jitter: relative standard deviation of the time that a step's computing takes, shared by the ranks.
        trend: relative growth of the computing time from first to last step.
        slow_rank: this rank computes `slowdown` times as long.
    """
    random = np.random.default_rng(random_seed)
    ranks, warmup, steps = trial.workers, trial.measure.warmup_steps, trial.measure.steps
    n = warmup + steps
    if transfer_s is None:
        transfer_s = 0.2 * step_s if ranks > 1 else 0.0
    common = 1 + jitter * random.standard_normal(n) + trend * (np.arange(n) / n)
    own = 1 + 0.1 * jitter * np.abs(random.standard_normal((ranks, n)))
    compute = np.maximum((step_s - transfer_s) * common * own, 1e-6)
    if slow_rank is not None:
        compute[slow_rank] *= slowdown
    if warmup:
        compute[:, 0] *= 5
    wall = compute.max(axis=0) + transfer_s
    start = np.concatenate([[0.0], np.cumsum(wall)[:-1]])
    kind = (["first"] if warmup else []) + ["warmup"] * (warmup - 1) + ["measured"] * steps
    columns: dict[str, Any] = {
        "rank": np.repeat(np.arange(ranks, dtype=np.int32), n),
        "step": np.tile(np.arange(n, dtype=np.int32), ranks),
        "kind": kind * ranks,
        "start_s": np.tile(start, ranks),
        "wall_s": np.tile(wall, ranks),
        "cpu_s": (compute * 0.995 * trial.cluster.threads_per_worker).ravel(),
        "loss": (2.3 * np.exp(-np.arange(n) / 100) + 0.01 * random.standard_normal((ranks, n))).ravel(),
    }
    for phase, share in COMPUTE_SHARES.items():
        columns[f"phase.{phase}"] = (compute * share).ravel()
    if ranks > 1:
        columns["phase.communication"] = (wall - compute).ravel()
    return pa.table(columns)


def make_layers(trial: Trial, names: tuple[str, ...] = ("conv1", "fc")) -> pa.Table:
    rows = [
        {"rank": rank, "layer": layer, "what": what, "step": step, "seconds": 1e-3 * (1 + rank)}
        for rank in range(trial.workers)
        for layer in names
        for what in ("forward", "gradient_ready")
        for step in range(2)
    ]
    return pa.Table.from_pylist(rows)


_SAMPLE_WORDS = {"step_s", "transfer_s", "jitter", "trend", "slow_rank", "slowdown", "random_seed"}
_FIELDS = set(Record.__dataclass_fields__) - {"hosts"}  # a word of the trial's too


def make_record(**changes: Any) -> Record:
    """A clean record; words of make_trial, of make_samples and fields of Record change it.

    Each repeat gets a seed of its own unless `random_seed` is given, so repeats differ as real ones do.
    `machine_id` is short for a machine that differs in its id alone; `facts` are those of every rank.
    """
    shape = {k: changes.pop(k) for k in list(changes) if k in _SAMPLE_WORDS}
    fields = {k: changes.pop(k) for k in list(changes) if k in _FIELDS and k != "layers"}
    machine = MACHINE | ({"id": changes.pop("machine_id")} if "machine_id" in changes else {})
    facts = changes.pop("facts", {})
    trial = fields.pop("trial", None) or make_trial(**changes)
    repeat, attempt = fields.get("repeat", 0), fields.get("attempt", 0)
    samples = make_samples(trial, **({"random_seed": 1 + repeat} | shape))
    threads = trial.cluster.threads_per_worker
    per_host = trial.cluster.workers_per_host
    ranks = tuple(
        Rank(
            rank=rank,
            host=f"host{rank // per_host}",
            cores=tuple(range(rank % per_host * threads, (rank % per_host + 1) * threads)),
            exit_code=0,
            framework_version="2.13.0",
            python="3.11.7",
            parameters=269722,
            setup_s=2.0,
            peak_rss_bytes=400 * 2**20,
            cpu_s=10.0,
            facts=facts,
        )
        for rank in range(trial.workers)
    )
    record = Record(
        run_id=f"{trial.id}.r{repeat}.a{attempt}",
        trial=trial,
        study="test",
        repeat=repeat,
        attempt=attempt,
        started=1_700_000_000.0 + 10 * repeat + attempt,
        elapsed_s=8.0,
        outcome=Outcome(kind=OutcomeKind.OK),
        ranks=ranks,
        machine=machine,
        state=STATE,
        environment={"name": trial.framework.environment, "lock": trial.framework.lock, "python": "3.11.7"},
        resources={},
        inputs={"graph": trial.workload.graph, "parameters": 269722},
        doubts=(),
        paceline="0.1.0",
        samples=samples,
        layers=make_layers(trial) if trial.measure.layers else None,
    )
    return replace(record, **fields)


def uneven_input(seconds: float, **changes: Any) -> Record:
    """Two ranks that take turns: the batch of one comes so much later, and the other waits for it in the exchange."""
    record = make_record(workers=2, step_s=0.05, jitter=0.0, **changes)
    samples = record.samples
    late = (np.array(samples["rank"]) + np.array(samples["step"])) % 2 == 0
    for name, added in (("phase.data", late), ("phase.communication", ~late), ("wall_s", late | ~late)):
        column = pa.array(np.array(samples[name]) + seconds * added)
        samples = samples.set_column(samples.column_names.index(name), name, column)
    return replace(record, samples=samples)


def failed_record(kind: str = "failed", **changes: Any) -> Record:
    """A run that ended before its first step."""
    outcome = Outcome(
        kind=OutcomeKind(kind), stage="during setup", reason="it broke", rank=0, log_tail=("Traceback", "boom")
    )
    return replace(make_record(**({"outcome": outcome, "samples": None} | changes)), layers=None)


def fused_record(*, by: str = "differences", seconds: dict[str, float] | None = None, **changes: Any) -> Record:
    """A run whose measured phases are data and step; `seconds` are derived, other facts as `step_s_derived`, `compile_s`.

    Without `seconds` nothing is derived; `facts` are those of every rank.
    """
    facts: dict[str, Any] = dict(changes.pop("facts", {}))
    if "compile_s" in changes:
        facts["compile_s"] = changes.pop("compile_s")
    if seconds is not None:
        facts["phases_derived"] = {"by": by, "seconds": seconds, "steps": 10}
        if "step_s_derived" in changes:
            facts["phases_derived"]["step_s"] = changes.pop("step_s_derived")
    record = make_record(**({"framework": "jax", "strategy": "shard_map"} | changes))
    samples = record.samples
    assert samples is not None
    kept = [name for name in samples.column_names if not name.startswith("phase.")]
    wall = np.asarray(samples["wall_s"].to_numpy())
    fused = samples.select(kept).append_column("phase.data", pa.array(0.01 * wall))
    fused = fused.append_column("phase.step", pa.array(0.99 * wall))
    return replace(record, samples=fused, ranks=tuple(replace(rank, facts=facts) for rank in record.ranks))
