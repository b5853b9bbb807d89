"""The steps that all ranks of a run have, laid side by side and summed up: who computes longer, who waits for whom.

Neutral numbers, of a run's samples alone: what they mean for stragglers and causes is said by `model` and `explain`.
Kept with the summary, so that neither needs the samples again. Pure.
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
"""Phases that compute."""
STARVED = "starved_s"
"""Column: how long the main thread could have run while no core was free."""
PHASE_PREFIX = "phase."
"""Columns of samples that hold a phase's seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankTimes:
    """Some time of every rank in every step, summed up."""

    means_s: tuple[float, ...]
    """Of each rank, over steps."""
    longest_s: float
    """Of the rank that took longest in each step, mean over steps."""
    n_steps: int
    variance: float | None
    """Of the logarithm, from step to step: each rank's from its own mean, less what all ranks share in a step. None
    where a time is not above zero, or steps are fewer than three."""
    lagged: float
    """Mean product of those deviations in neighbouring steps."""

    @property
    def mean_s(self) -> float:
        return sum(self.means_s) / len(self.means_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lockstep:
    """What the steps say that every rank has; a phase that a rank did not take counts as nothing."""

    step_s: float
    """Mean over ranks and steps."""
    phases_s: Mapping[str, float]
    """Likewise, of each phase."""
    exchange_s: float | None
    """Communication of the rank that waited least in each step, mean over steps; None: no such phase."""
    passes: RankTimes | None
    """Forward and backward together, as far as they are timed; None: neither is."""
    others: RankTimes | None
    """The step without its communication, where the passes are not both timed; None where there is no such phase and
    more than one rank, so that waiting cannot be told from computing."""
    late_input_s: float
    """In which ranks wait for others whose batch comes later, beyond what they would wait anyway for those that compute
    longer. Timers call it communication, but input causes it. 0 where that is not timed."""
    starved_s: float
    """Mean over ranks and steps in which the main thread could have run and had no core, without what the site itself
    withholds from a host that has a share of a core; 0 where the system does not tell."""


def lockstep(record: Record, measured: pa.Table) -> Lockstep | None:
    """Of the measured rows of a run; None where no step is one of all ranks."""
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
    """One row per rank and one column per step."""
    ranks, steps = seconds.shape
    variance, lagged = None, 0.0
    if steps >= 3 and (seconds > 0).all():
        logs = np.log(seconds)
        # What all ranks have in common in a step (a longer sequence, a busy machine) lets nobody wait.
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
    """Where each sample goes in a matrix of one row per rank and one column per step that all ranks have."""

    def __init__(self, table: pa.Table) -> None:
        rank, step = floats(table, "rank"), floats(table, "step")
        ranks = np.unique(rank)
        rows = [np.flatnonzero(rank == each) for each in ranks]
        first = step[rows[0]] if rows else step
        if all(len(own) == len(first) and (step[own] == first).all() for own in rows):
            order = np.argsort(first, kind="stable")  # as runs are stored: every rank took the same steps
            self._rows = np.array([own[order] for own in rows], dtype=np.intp).reshape(len(ranks), len(order))
        else:
            shared = sorted(set.intersection(*(set(step[own].tolist()) for own in rows)))
            places = [dict(zip(step[own].tolist(), own.tolist(), strict=True)) for own in rows]
            found = [[place[each] for each in shared] for place in places]
            self._rows = np.array(found, dtype=np.intp).reshape(len(ranks), len(shared))

    @property
    def n_steps(self) -> int:
        return int(self._rows.shape[1])

    def matrix(self, values: Floats) -> Floats:
        """Values of all rows, laid out."""
        return values[self._rows]


def floats(table: pa.Table, column: str) -> Floats:
    """A column as numbers; missing values are NaN."""
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
