"""Compares the ranks of a run in the steps that all of them have: which computes longer, and how long others wait.

The numbers follow from the samples of the run alone; `model` and `explain` interpret them. They are stored with the
summary, so that neither has to read the samples. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paceline.plan.vocabulary import ASYNCHRONOUS
from paceline.record.phases import COMMUNICATION, Floats
from paceline.record.record import Record

DATA = "data"
"""The phase in which a rank waits for its batch."""
PASSES = ("forward", "backward")
"""The phases that compute."""
STARVED = "starved_s"
"""The column with the time in which the main thread was ready to run but had no core."""
PHASE_PREFIX = "phase."
"""The prefix of the columns that contain the seconds of a phase."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankTimes:
    """A summary of one kind of time, of every rank in every step."""

    means_s: tuple[float, ...]
    """The mean of each rank over steps."""
    longest_s: float
    """The time of the slowest rank in each step, as a mean over steps."""
    n_steps: int
    variance: float | None
    """The variance of the logarithm from step to step, of the deviations of each rank from its own mean and from the
    mean of all ranks in the step. None if a time is not above zero, or if there are fewer than three steps."""
    lagged: float
    """The mean product of these deviations in successive steps."""

    @property
    def mean_s(self) -> float:
        return sum(self.means_s) / len(self.means_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lockstep:
    """The times of the steps that every rank has. A phase that a rank does not have counts as zero."""

    step_s: float
    """The mean step time over ranks and steps."""
    phases_s: Mapping[str, float]
    """Phase → its mean time over ranks and steps."""
    exchange_s: float | None
    """The communication of the rank that waited least in each step, as a mean over steps; None without such a phase."""
    passes: RankTimes | None
    """The forward and backward passes together, as far as they are timed; None if neither is."""
    others: RankTimes | None
    """The step without its communication, if the passes are not both timed. None if several ranks have no communication
    phase, because their waiting then cannot be separated from computing."""
    late_input_s: float
    """The time in which ranks wait for others whose batch comes later, beyond the time that they would wait anyway for
    ranks that compute longer. Timers count it as communication, but its cause is the input. 0 if that is not timed."""
    starved_s: float
    """The mean time per step in which the main thread was ready to run but had no core, without the time that the site
    withholds from a host with a share of a core; 0 if the system does not report it."""


def lockstep(record: Record, measured: pa.Table) -> Lockstep | None:
    """Returns the times of the steps that all ranks have; None if there is no such step."""
    laid = StepLayout(measured)
    if not laid.n_steps:
        return None
    names = [name for name in measured.column_names if name.startswith(PHASE_PREFIX)]
    phases = {name.removeprefix(PHASE_PREFIX): laid.matrix(np.nan_to_num(floats(measured, name))) for name in names}
    wall = laid.matrix(floats(measured, "wall_s"))
    timed = [phases[name] for name in PASSES if name in phases]
    exchange = phases.get(COMMUNICATION)
    others = None
    if len(timed) < len(PASSES):
        alone = record.trial.ranks == 1
        others = wall - exchange if exchange is not None else wall if alone else None
    return Lockstep(
        step_s=float(wall.mean()),
        phases_s={name: float(matrix.mean()) for name, matrix in phases.items()},
        exchange_s=None if exchange is None else float(exchange.min(axis=0).mean()),
        passes=rank_times(np.sum(timed, axis=0)) if timed else None,
        others=None if others is None else rank_times(others),
        late_input_s=_late_input_s(record, phases),
        starved_s=_starved_s(record, measured),
    )


def rank_times(seconds: Floats) -> RankTimes:
    """Summarizes times that are given as one row per rank and one column per step."""
    ranks, steps = seconds.shape
    variance, lagged = None, 0.0
    if steps >= 3 and (seconds > 0).all():
        logs = np.log(seconds)
        # A delay that all ranks share in a step (a longer sequence, a busy machine) makes no rank wait for another.
        own = logs - logs.mean(axis=0) if ranks > 1 else logs
        passing = own - own.mean(axis=1)[:, None]
        variance = float((passing**2).mean())
        lagged = float((passing[:, 1:] * passing[:, :-1]).mean())
    return RankTimes(
        means_s=tuple(seconds.mean(axis=1).tolist()),
        longest_s=float(seconds.max(axis=0).mean()),
        n_steps=steps,
        variance=variance,
        lagged=lagged,
    )


class StepLayout:
    """The place of each sample in a matrix with one row per rank and one column per step that all ranks have."""

    def __init__(self, table: pa.Table) -> None:
        rank, step = floats(table, "rank"), floats(table, "step")
        ranks = np.unique(rank)
        rows = [np.flatnonzero(rank == number) for number in ranks]
        first = step[rows[0]] if rows else step
        if all(len(own) == len(first) and (step[own] == first).all() for own in rows):
            order = np.argsort(first, kind="stable")  # the usual case: every rank took the same steps
            self._rows = np.array([own[order] for own in rows], dtype=np.intp).reshape(len(ranks), len(order))
        else:
            shared = sorted(set.intersection(*(set(step[own].tolist()) for own in rows)))
            places = [dict(zip(step[own].tolist(), own.tolist(), strict=True)) for own in rows]
            rows_of_ranks = [[place[shared_step] for shared_step in shared] for place in places]
            self._rows = np.array(rows_of_ranks, dtype=np.intp).reshape(len(ranks), len(shared))

    @property
    def n_steps(self) -> int:
        return int(self._rows.shape[1])

    def matrix(self, values: Floats) -> Floats:
        """Returns the values of all rows as this matrix."""
        return values[self._rows]


def floats(table: pa.Table, column: str) -> Floats:
    """Returns a column as numbers; missing values are NaN."""
    return np.asarray(table[column].to_numpy(), dtype=np.float64)


def _late_input_s(record: Record, phases: Mapping[str, Floats]) -> float:
    together = record.trial.ranks > 1 and record.trial.framework.strategy_class != ASYNCHRONOUS
    if not together or not {DATA, *PASSES} <= set(phases):
        return 0.0
    computing = phases[PASSES[0]] + phases[PASSES[1]]

    def waited(times: Floats) -> float:
        return float((times.max(axis=0) - times.mean(axis=0)).mean())

    return max(0.0, waited(phases[DATA] + computing) - waited(computing))


def _starved_s(record: Record, measured: pa.Table) -> float:
    if STARVED not in measured.column_names:
        return 0.0
    waited, used = (np.nan_to_num(floats(measured, name)) for name in (STARVED, "cpu_s"))
    share = record.pace.granted
    withheld = used * (1 / share - 1) if share < 1 else np.zeros_like(used)
    return float(np.maximum(waited - withheld, 0.0).mean())
