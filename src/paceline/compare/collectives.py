"""Stand-alone collectives: time and bandwidth by message size, in the columns of nccl-tests and OSU. Pure.

The time of an operation is that of its slowest rank. The time of a run for a size is the median over its measured
rounds; the times of several runs give a mean with its interval. Bandwidths follow from the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.compare.comparison import Comparison, Note
from paceline.compare.rows import Row, RowOutcome, RowWarning
from paceline.compare.runs import Runs
from paceline.record.summary import slowest_times
from paceline.stats import LEVEL, mean_interval
from paceline.stats.estimate import Estimate
from paceline.workloads.collective import BUS_FACTORS, Collective

__all__ = ["CollectiveTable", "Collectives", "SizeRow", "tables_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeRow:
    """The results for one message size."""

    size: int
    """The bytes as nccl-tests counts them: those that every rank has at the end, or at the beginning."""
    time: Estimate
    """The seconds per operation."""
    algbw: Estimate
    """The algorithm bandwidth: bytes ÷ time."""
    busbw: Estimate
    """The bus bandwidth: the traffic on the links, comparable between operations and numbers of ranks."""
    rounds: int
    """The measured operations per run."""

    def to_json(self) -> dict[str, object]:
        return {
            "size": self.size,
            "time_s": self.time.to_json(),
            "algbw": self.algbw.to_json(),
            "busbw": self.busbw.to_json(),
            "rounds": self.rounds,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveTable:
    """The results of one operation of one framework on a number of ranks."""

    key: str
    """The key of the table, as that of a row of a comparison."""
    trial: str
    """The id of the trial."""
    label: str
    """What distinguishes it from the other tables, in words."""
    framework: str
    library: str | None
    """The library of the exchange, as the ranks report it; None before a run."""
    operation: str
    ranks: int
    hosts: int
    network: str | None
    """The label of the emulated links; None if the links are not emulated."""
    simulated: bool
    verified: bool
    """Whether the ranks checked the results of the first round."""
    outcome: RowOutcome
    """How its runs ended, as for a row of a comparison."""
    reason: str | None
    """Why it is not ok."""
    n_runs: int
    sizes: tuple[SizeRow, ...]
    """The message sizes, smallest first."""
    warnings: tuple[RowWarning, ...]

    def to_json(self) -> dict[str, object]:
        data: dict[str, object] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return data | {
            "sizes": [row.to_json() for row in self.sizes],
            "warnings": [warning.to_json() for warning in self.warnings],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Collectives:
    """All collectives of a study."""

    tables: tuple[CollectiveTable, ...]
    shared: str
    """What all tables have in common, in words."""
    notes: tuple[Note, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "tables": [table.to_json() for table in self.tables],
            "shared": self.shared,
            "notes": [note.to_json() for note in self.notes],
            "level": LEVEL,
        }


def tables_of(groups: Sequence[Runs], comparison: Comparison) -> Collectives:
    """Returns one table per row of a comparison of collectives."""
    tables = [
        _table(runs, row, collective)
        for runs, row in zip(groups, comparison.rows, strict=True)
        if (collective := runs.trial.workload.collective) is not None
    ]
    return Collectives(tables=tuple(tables), shared=comparison.shared, notes=comparison.notes)


def _table(runs: Runs, row: Row, collective: Collective) -> CollectiveTable:
    reported = [rank.reported for record, _ in runs.measured for rank in record.ranks]
    return CollectiveTable(
        key=row.key,
        trial=row.trial,
        label=row.label,
        framework=row.framework,
        library=next((facts.library for facts in reported if facts.library), None),
        operation=collective.operation,
        ranks=row.workers,
        hosts=row.hosts,
        network=row.network,
        simulated=row.simulated,
        verified=bool(reported) and all(facts.verified for facts in reported),
        outcome=row.outcome,
        reason=row.reason,
        n_runs=row.n_runs,
        warnings=row.warnings,
        sizes=tuple(_sizes(runs, collective.operation, row.workers)),
    )


def _sizes(runs: Runs, operation: str, ranks: int) -> list[SizeRow]:
    medians: dict[int, list[float]] = {}
    rounds: dict[int, int] = {}
    for record, _ in runs.measured:
        for size, times in slowest_times(record).items():
            medians.setdefault(size, []).append(float(np.median(times)))
            rounds[size] = min(rounds.get(size, len(times)), len(times))
    factor = BUS_FACTORS[operation](ranks)
    rows = []
    for size in sorted(medians):
        time = mean_interval(medians[size], unit="s", by=runs.measured_by)
        algbw = replace(time.over(size, "B/s"), by=runs.derived_by)
        rows.append(SizeRow(size=size, time=time, algbw=algbw, busbw=algbw.times(factor), rounds=rounds[size]))
    return rows
