"""One run's numbers, derived from its raw samples. Pure: same record, same numbers. What the store keeps of them
(`summaries`) is known by the checksum of the samples, and may be thrown away.

Only measured steps count, except where a number is about the first one. Throughput is Σ over ranks of
batch × steps ÷ Σ wall: ranks add up, and a slow step weighs as much as it lasted. Knows no statistics over
runs: that is `compare`.
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
"""By which a summary is known among what was derived from a series."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSummary:
    """What one run measured, over its measured steps."""

    throughput: float
    """Samples a second, all ranks together."""
    step_s: float
    """Global batch ÷ throughput."""
    phases: Mapping[str, PhaseTime]
    """Measured phases, in the order of the step."""
    phases_derived: Mapping[str, PhaseTime]
    """What is inside a fused step, where the framework could derive it; parts of a measured phase, not more of them."""
    communication_transfer_s: float | None
    """The exchange itself: the shortest of the ranks in each step, mean over steps. None: no such measured phase, one
    rank alone, or ranks that do not step together."""
    communication_waiting_s: float | None
    """The rest of the communication phase, mean over ranks: waiting for slower ones."""
    cpu_utilisation: float | None
    """CPU seconds ÷ wall seconds ÷ cores, over all ranks; None where no CPU time was taken."""
    peak_rss_bytes: float | None
    """Sum of the ranks' peaks."""
    peak_rss_rank_bytes: float | None
    """The largest rank's peak."""
    first_step_s: float | None
    """The very first step, slowest rank: allocation, connections, what is still to compile. None without warm-up."""
    compile_s: float | None
    """Tracing and compilation ahead of the first step, slowest rank; part of the set-up. None where no rank tells."""
    compile_in_first_step_s: float | None
    """Compilation in the first step, slowest rank; part of first_step_s. None where no rank tells."""
    setup_s: float | None
    """Process start to first step, slowest rank."""
    loss_first: float | None
    """Mean loss over ranks in the first step that has one."""
    loss_last: float | None
    """Mean loss over ranks in the last step that has one."""
    n_steps: int
    """Measured steps that every rank has."""
    n_ranks: int
    """Ranks that measured."""
    lockstep: Lockstep | None = None
    """What the steps say that all ranks have; None: there are none."""


def summarize(record: Record) -> RunSummary | None:
    """The run's numbers, or None when no step was measured. Of a recorded run they are derived once."""
    file = file_of(record, SAMPLES)
    if file is None:
        return sum_up(record)
    if SUMMARY not in file.derived:
        file.derived[SUMMARY] = sum_up(record)
    summary = file.derived[SUMMARY]
    assert summary is None or isinstance(summary, RunSummary)
    return summary


def sum_up(record: Record) -> RunSummary | None:
    """The numbers, derived from the samples again."""
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
    """The rows of measured steps, or None when there are none or their times cannot be divided by."""
    import pyarrow.compute as pc  # noqa: PLC0415  costs every command a twentieth of a second, and few decode samples

    samples = record.samples
    if samples is None:
        return None
    measured = samples.filter(pc.equal(samples["kind"], "measured"))
    wall = floats(measured, "wall_s")
    if len(wall) == 0 or not np.isfinite(wall).all() or not (wall > 0).all():
        return None
    return measured


def phase_columns(table: pa.Table) -> dict[str, Floats]:
    """Phase → its seconds, row by row, in the order of the step."""
    return {
        name.removeprefix(PHASE_PREFIX): floats(table, name)
        for name in table.column_names
        if name.startswith(PHASE_PREFIX)
    }


def by_step(table: pa.Table, values: Floats) -> Floats:
    """Values as a matrix, one row per rank and one column per step that all ranks have."""
    return StepLayout(table).matrix(values)


def slowest_times(record: Record) -> dict[int, list[float]]:
    """Size → seconds of each measured operation on the rank that took longest."""
    measured = measured_samples(record)
    if measured is None or "bytes" not in measured.column_names:
        return {}
    times = by_step(measured, floats(measured, "wall_s")).max(axis=0)
    sizes = by_step(measured, floats(measured, "bytes"))[0]
    return {int(size): times[sizes == size].tolist() for size in np.unique(sizes)}


def cores_of_ranks(record: Record) -> dict[int, int]:
    """Rank → cores in its budget: those it is pinned to, else the threads of all its workers."""
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
    import pyarrow.compute as pc  # noqa: PLC0415  as above

    first = samples["wall_s"].filter(pc.equal(samples["kind"], "first"))
    longest: float | None = pc.max(first).as_py()
    return longest


def _losses(samples: pa.Table) -> tuple[float | None, float | None]:
    loss, step = floats(samples, "loss"), floats(samples, "step")
    known = ~np.isnan(loss)
    if not known.any():
        return None, None
    first, last = step[known].min(), step[known].max()
    return float(loss[known & (step == first)].mean()), float(loss[known & (step == last)].mean())
