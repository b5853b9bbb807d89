"""The numbers of one run, derived from its raw samples. Pure: the same record always gives the same numbers.

Only measured steps count, except in numbers about the first step. The throughput is the sum over ranks of
batch × steps ÷ total wall time, so a slow step has the weight of its duration. Statistics over runs are part of
`compare`. The store keeps summaries (`summaries`); they can always be derived again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paceline.plan.vocabulary import ASYNCHRONOUS
from paceline.record.lockstep import PHASE_PREFIX, Lockstep, StepLayout, floats, lockstep
from paceline.record.on_demand import file_of
from paceline.record.phases import (
    COMMUNICATION,
    Floats,
    PhaseTime,
    derived_of,
    measured_phases,
    split_communication,
)
from paceline.record.record import Record
from paceline.record.sample_files import SAMPLES

SUMMARY = "summary"
"""The name of the summary in `SeriesFile.derived`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """The numbers of one run, over its measured steps."""

    throughput: float
    """Samples per second of all ranks together."""
    step_s: float
    """The global batch ÷ throughput."""
    phases: Mapping[str, PhaseTime]
    """The measured phases, in the order of the step."""
    phases_derived: Mapping[str, PhaseTime]
    """The derived phases of a fused step, if the framework could derive them. They are parts of a measured phase."""
    communication_transfer_s: float | None
    """The exchange itself: the shortest communication phase of the ranks in each step, as a mean over steps. None if no
    such phase was measured, or the ranks do not step together, or there is only one."""
    communication_waiting_s: float | None
    """The rest of the communication phase, in which ranks wait for slower ones, as a mean over ranks."""
    cpu_utilisation: float | None
    """CPU seconds ÷ wall seconds ÷ cores, over all ranks; None if no CPU time was recorded."""
    peak_rss_bytes: float | None
    """The sum of the peaks of all ranks."""
    peak_rss_rank_bytes: float | None
    """The largest peak of a rank."""
    first_step_s: float | None
    """The first step of the slowest rank, with allocation, connections and late compilation; None without warm-up."""
    compile_s: float | None
    """Tracing and compilation before the first step, of the slowest rank; part of the set-up. None if not reported."""
    compile_in_first_step_s: float | None
    """Compilation in the first step, of the slowest rank; part of first_step_s. None if not reported."""
    setup_s: float | None
    """The time from process start to the first step, of the slowest rank."""
    loss_first: float | None
    """The mean loss over ranks in the first step that has one."""
    loss_last: float | None
    """The mean loss over ranks in the last step that has one."""
    n_steps: int
    """The number of measured steps that every rank has."""
    n_ranks: int
    """The number of ranks with measured steps."""
    lockstep: Lockstep | None = None
    """A comparison of the ranks in the steps that all of them have; None if there are none."""


def summarize(record: Record) -> RunSummary | None:
    """Returns the numbers of a run; None if no step was measured. For a recorded run they are derived only once."""
    file = file_of(record, SAMPLES)
    if file is None:
        return sum_up(record)
    if SUMMARY not in file.derived:
        file.derived[SUMMARY] = sum_up(record)
    summary = file.derived[SUMMARY]
    assert summary is None or isinstance(summary, RunSummary)
    return summary


def sum_up(record: Record) -> RunSummary | None:
    """Derives the numbers of a run from its samples."""
    measured = measured_samples(record)
    if measured is None:
        return None
    rank, wall = floats(measured, "rank"), floats(measured, "wall_s")
    present = np.unique(rank)
    steps = {r: int((rank == r).sum()) for r in present}
    batch = record.trial.batch_global // record.trial.ranks
    throughput = sum(batch * steps[r] / float(wall[rank == r].sum()) for r in present)
    step_s = float(wall.mean())
    phases = measured_phases(phase_columns(measured), step_s, record.phases_by)
    derived = derived_of(record.ranks)
    transfer, waiting = _communication(record, measured)
    peaks = [r.peak_rss_bytes for r in record.ranks if r.peak_rss_bytes is not None]
    setups = [r.setup_s for r in record.ranks if r.setup_s is not None]
    loss_first, loss_last = _losses(record.samples)
    return RunSummary(
        throughput=throughput,
        step_s=record.trial.batch_global / throughput,
        phases=phases,
        phases_derived=derived.fit(phases, step_s) if derived else {},
        communication_transfer_s=transfer,
        communication_waiting_s=waiting,
        cpu_utilisation=_utilisation(record, measured),
        peak_rss_bytes=sum(peaks) if peaks else None,
        peak_rss_rank_bytes=max(peaks, default=None),
        first_step_s=_first_step(record.samples),
        compile_s=_slowest(rank.reported.compile_s for rank in record.ranks),
        compile_in_first_step_s=_slowest(rank.reported.compile_in_first_step_s for rank in record.ranks),
        setup_s=max(setups, default=None),
        loss_first=loss_first,
        loss_last=loss_last,
        n_steps=min(steps.values()),
        n_ranks=len(present),
        lockstep=lockstep(record, measured),
    )


def measured_samples(record: Record) -> pa.Table | None:
    """Returns the rows of measured steps; None if there are none, or if a time is not finite and positive."""
    import pyarrow.compute as pc  # noqa: PLC0415  the import takes 50 ms, and few commands decode samples

    samples = record.samples
    if samples is None:
        return None
    measured = samples.filter(pc.equal(samples["kind"], "measured"))
    wall = floats(measured, "wall_s")
    if len(wall) == 0 or not np.isfinite(wall).all() or not (wall > 0).all():
        return None
    return measured


def phase_columns(table: pa.Table) -> dict[str, Floats]:
    """Returns phase → its seconds in each row, in the order of the step."""
    return {
        name.removeprefix(PHASE_PREFIX): floats(table, name)
        for name in table.column_names
        if name.startswith(PHASE_PREFIX)
    }


def by_step(table: pa.Table, values: Floats) -> Floats:
    """Returns values as a matrix with one row per rank and one column per step that all ranks have."""
    return StepLayout(table).matrix(values)


def slowest_times(record: Record) -> dict[int, list[float]]:
    """Returns message size → the seconds of each measured operation on its slowest rank."""
    measured = measured_samples(record)
    if measured is None or "bytes" not in measured.column_names:
        return {}
    times = by_step(measured, floats(measured, "wall_s")).max(axis=0)
    sizes = by_step(measured, floats(measured, "bytes"))[0]
    return {int(size): times[sizes == size].tolist() for size in np.unique(sizes)}


def cores_of_ranks(record: Record) -> dict[int, int]:
    """Returns rank → its number of cores: those that it is pinned to, else the threads of all its workers."""
    threads = record.trial.cluster.threads_per_worker * record.trial.workers // record.trial.ranks
    return {r.rank: len(r.cores) or threads for r in record.ranks}


def _communication(record: Record, measured: pa.Table) -> tuple[float | None, float | None]:
    seconds = phase_columns(measured).get(COMMUNICATION)
    if seconds is None or record.trial.framework.strategy_class == ASYNCHRONOUS:
        return None, None
    matrix = by_step(measured, seconds)
    return split_communication(matrix) if matrix.shape[0] > 1 and matrix.size else (None, None)


def _slowest(reported: Iterable[float | None]) -> float | None:
    return max((seconds for seconds in reported if seconds is not None), default=None)


def _utilisation(record: Record, measured: pa.Table) -> float | None:
    cpu, wall, rank = (floats(measured, name) for name in ("cpu_s", "wall_s", "rank"))
    if np.isnan(cpu).any():
        return None
    budget = cores_of_ranks(record)
    default = record.trial.cluster.threads_per_worker
    cores = np.asarray([budget.get(int(r), default) for r in rank], dtype=np.float64)
    return float(cpu.sum() / (wall * cores).sum())


def _first_step(samples: pa.Table) -> float | None:
    import pyarrow.compute as pc  # noqa: PLC0415  as in `measured_samples`

    first = samples["wall_s"].filter(pc.equal(samples["kind"], "first"))
    longest: float | None = pc.max(first).as_py()
    return longest


def _losses(samples: pa.Table) -> tuple[float | None, float | None]:
    loss, step = floats(samples, "loss"), floats(samples, "step")
    reported = ~np.isnan(loss)
    if not reported.any():
        return None, None
    first, last = step[reported].min(), step[reported].max()
    return float(loss[reported & (step == first)].mean()), float(loss[reported & (step == last)].mean())
