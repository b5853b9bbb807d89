"""Checks the numbers of a run before they are stored: whether they can be true, and what is doubtful about them.

Pure: takes a record and returns doubts, each with a stable code, the number that was seen and what to do about it. A
doubt never changes or hides a number; it is stored and shown with it. Codes that start with "impossible-" mean that the
measurement contradicts itself. Runs that did not end well say so in their outcome and are not checked. Simulated runs
are not checked against the machine that they ran on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from paceline.plan.vocabulary import EXACT
from paceline.record.lockstep import floats
from paceline.record.machine_checks import machine_doubts
from paceline.record.phases import derived_of
from paceline.record.program_checks import program_doubts
from paceline.record.record import Doubt, Record
from paceline.record.site_checks import site_doubts
from paceline.record.summary import (
    RunSummary,
    by_step,
    cores_of_ranks,
    measured_samples,
    phase_columns,
    summarize,
)
from paceline.stats import drift, relative_spread

ARITHMETIC_TOLERANCE = 0.01
"""Sums of the same clock readings agree up to rounding. One per cent leaves room for phases that were derived from
separate executables, and is the overhead that we promise for our instrumentation."""

CLOCK_S = 1e-6
"""Reading a clock takes up to a microsecond; a sum of phases can be off by this much per phase."""

UTILISATION_TOLERANCE = 0.02
"""Kernels without precise accounting count CPU time in ticks of 1 to 10 ms, which is up to 2 % of a run of one
second."""

TICK_S = 0.01
"""The longest scheduler tick in use (100 Hz). In a very short run a single tick exceeds the relative tolerance."""

SPREAD_LIMIT = 0.10
"""Training steps repeat the same work; pyperf calls a benchmark unstable above the same 10 %."""

DRIFT_LIMIT = 0.05
"""On a quiet machine the means of runs were measured to differ by 4 to 5 %, so a smaller change within a run is not
reported."""

DRIFT_P = 0.01
"""Stricter than the usual 5 %, because correlated steps make the p value too small."""

DERIVED_LIMIT = 0.2
"""The largest deviation of derived phases, as a share of the step. It is twice SPREAD_LIMIT, because programs that run
in turn find colder caches than a repeated step and each has noise of its own."""

MIN_STEPS = 10
"""With fewer steps, one disturbed step changes the mean by more than a tenth of the disturbance."""

MIN_TREND_STEPS = 10
"""With fewer points Kendall's test hardly ever reaches its level, and the slope is mostly noise."""

GAP_LIMIT = 0.05
"""Between blocks of steps ranks only synchronise and write one line. If more than 5 % of the time is outside of steps,
the program does other work there."""

Numbers = tuple[Record, pa.Table, RunSummary]
"""The input of a check of samples: the record, its measured rows, and the summary of them."""


def check(record: Record) -> tuple[Doubt, ...]:
    """Returns every doubt about the numbers of a run, worst first, without those that the record has already."""
    doubts: list[Doubt] = []
    if record.ok:
        doubts += _identity(record)
        measured, summary = measured_samples(record), summarize(record)
        if measured is None or summary is None:
            doubts.append(_unusable(record))
        else:
            for check_numbers in CHECKS if record.trial.workload.collective is None else CHECKS_OF_COLLECTIVES:
                doubts += check_numbers((record, measured, summary))
            if not record.trial.framework.simulated:
                doubts += machine_doubts(record, measured)
                doubts += site_doubts(record)
    if record.trial.framework.simulated:
        doubts.append(
            Doubt(
                code="simulated",
                message="times are drawn from a law, not measured",
                hint="measure for real: take a framework, or a knob of this one, that does not draw its times",
            )
        )
    stored = {doubt.code for doubt in record.doubts}
    new = [doubt for doubt in doubts if doubt.code not in stored]
    return tuple(sorted(new, key=lambda doubt: not doubt.code.startswith("impossible-")))


def _unusable(record: Record) -> Doubt:
    if record.samples is None:
        return Doubt(code="samples-none", message="the run succeeded but reported no steps", hint=_REPORT)
    return Doubt(
        code="impossible-step-time",
        message="no measured step, or one that took no finite positive time",
        hint=_REPORT,
    )


_REPORT = "do not use this run; report it with: paceline export --format json --samples"


def _identity(record: Record) -> Iterator[Doubt]:
    counted = {rank.rank: rank.parameters for rank in record.ranks if rank.parameters is not None}
    if len(set(counted.values())) > 1:
        listed = ", ".join(f"rank {rank}: {count}" for rank, count in sorted(counted.items()))
        yield Doubt(
            code="parameters-ranks",
            message=f"ranks trained models of different size ({listed})",
            hint="check that every host has the same environment: paceline doctor",
        )
    expected = record.input_facts.parameters
    wrong = sorted(rank for rank, count in counted.items() if expected is not None and count != expected)
    if wrong:
        yield Doubt(
            code="parameters-graph",
            message=f"the workload has {expected} parameters, rank {wrong[0]} trained {counted[wrong[0]]}",
            hint="the adapter built another model than requested: paceline doctor",
        )


def _ranks(numbers: Numbers) -> Iterator[Doubt]:
    record, measured, summary = numbers
    asked = record.trial.ranks
    missing = sorted(set(range(asked)) - {int(rank) for rank in floats(measured, "rank")})
    if missing or summary.n_ranks != asked:
        yield Doubt(
            code="ranks-missing",
            message=f"{summary.n_ranks} of {asked} ranks reported"
            + (f"; nothing from rank {', '.join(map(str, missing))}" if missing else ""),
            hint="measure again: paceline run STUDY --retry-failed",
        )


def _steps(numbers: Numbers) -> Iterator[Doubt]:
    record, measured, summary = numbers
    rank, asked = floats(measured, "rank"), record.trial.measure.steps * record.trial.steps_a_round
    counts = {int(r): len(np.unique(floats(measured, "step")[rank == r])) for r in np.unique(rank)}
    rows = {int(r): int((rank == r).sum()) for r in np.unique(rank)}
    odd = sorted(r for r in counts if counts[r] != asked or rows[r] != asked)
    if odd:
        yield Doubt(
            code="steps-missing",
            message=f"{asked} measured steps were requested; rank {odd[0]} has {rows[odd[0]]}, of which"
            f" {counts[odd[0]]} different",
            hint=_REPORT,
        )
    taken = summary.n_steps // record.trial.steps_a_round
    if taken < MIN_STEPS:
        yield Doubt(
            code="few-steps",
            message=f"{taken} measured steps: one disturbed step moves the result",
            hint=f"ask for at least {MIN_STEPS}: steps = {MIN_STEPS} under [measure]",
        )


def _throughput(numbers: Numbers) -> Iterator[Doubt]:
    """Checks batch ÷ step time against the clock: the steps of a rank must not overlap, nor leave long gaps."""
    record, measured, _ = numbers
    rank, start, wall = (floats(measured, name) for name in ("rank", "start_s", "wall_s"))
    for r in np.unique(rank):
        order = np.argsort(start[rank == r])
        begins, lasts = start[rank == r][order], wall[rank == r][order]
        claimed, span = float(lasts.sum()), float(begins[-1] + lasts[-1] - begins[0])
        if claimed > span * (1 + ARITHMETIC_TOLERANCE) + CLOCK_S * len(lasts):
            yield Doubt(
                code="impossible-throughput",
                message=f"steps of rank {r:.0f} sum to {claimed:.4g} s within {span:.4g} s of clock time:"
                " batch ÷ step time is not the throughput",
                hint=_REPORT,
            )
            return
        # Ranks synchronise before each stand-alone collective; that time is left out of the steps on purpose.
        if span - claimed > GAP_LIMIT * span and record.trial.workload.collective is None:
            yield Doubt(
                code="gaps",
                message=f"{(span - claimed) / span:.0%} of rank {r:.0f}'s time passed between measured steps"
                " and is in no step time",
                hint="mark the whole loop, or move evaluation and logging out of the measured part",
            )
            return


def _program(numbers: Numbers) -> Iterator[Doubt]:
    record, _, _ = numbers
    yield from program_doubts(record)


def _phases(numbers: Numbers) -> Iterator[Doubt]:
    _, measured, _ = numbers
    columns = phase_columns(measured)
    if not columns:
        return
    rank, wall = floats(measured, "rank"), floats(measured, "wall_s")
    total = sum(columns.values(), np.zeros_like(wall))
    for r in np.unique(rank):
        phases, step = float(total[rank == r].mean()), float(wall[rank == r].mean())
        if not np.isfinite(phases) or phases > step * (1 + ARITHMETIC_TOLERANCE) + CLOCK_S * len(columns):
            yield Doubt(
                code="impossible-phases",
                message=f"phases of rank {r:.0f} sum to {phases:.4g} s in a step of {step:.4g} s",
                hint=_REPORT,
            )
            return
    negative = [name for name, seconds in columns.items() if float(seconds.mean()) < -CLOCK_S]
    if negative:
        yield Doubt(
            code="impossible-phases",
            message=f"phase {negative[0]} has a negative time on average",
            hint=_REPORT,
        )


def _derived(numbers: Numbers) -> Iterator[Doubt]:
    """Checks the phases that were derived for a fused step against the measured step."""
    record, _, summary = numbers
    derived = derived_of(record.ranks)
    if derived is None:
        return
    seen = []
    scale = derived.scale(summary.phases)
    if scale is not None and abs(1 / scale - 1) > DERIVED_LIMIT:
        seen.append(f"the step took {1 / scale:.2f} × as long there as in the measured steps")
    below = {name: phase.share for name, phase in summary.phases_derived.items() if phase.share < -DERIVED_LIMIT}
    if below:
        worst = min(below, key=below.__getitem__)
        seen.append(f"{worst} came out at {below[worst]:.0%} of the step")
    if seen:
        yield Doubt(
            code="derived-phases",
            message=f"phases derived by {derived.by} do not fit the measured step: {'; '.join(seen)}",
            hint="trust the measured phases; measure again on a quiet machine, with more steps, for the derived ones",
        )


def _rank_sums(numbers: Numbers) -> Iterator[Doubt]:
    """Checks that throughputs of ranks add up: ranks that exchange in every step are at most one step apart."""
    record, measured, _ = numbers
    if record.trial.ranks < 2 or record.trial.framework.strategy_class != EXACT:
        return
    wall = by_step(measured, floats(measured, "wall_s"))
    if wall.size == 0:
        return
    totals = wall.sum(axis=1)
    apart, allowed = float(np.ptp(totals)), float(wall.max()) + ARITHMETIC_TOLERANCE * float(totals.max())
    if apart > allowed:
        yield Doubt(
            code="impossible-ranks",
            message=f"ranks that step together differ by {apart:.4g} s over {wall.shape[1]} steps:"
            " their throughputs do not add up to a global one",
            hint="check that the strategy really exchanges in every step: paceline doctor",
        )


def _utilisation(numbers: Numbers) -> Iterator[Doubt]:
    record, measured, _ = numbers
    if record.trial.framework.simulated:
        return
    rank, wall, cpu = (floats(measured, name) for name in ("rank", "wall_s", "cpu_s"))
    cores = cores_of_ranks(record)
    pinned = {r.rank for r in record.ranks if r.cores}
    for r in np.unique(rank):
        budget = cores.get(int(r), record.trial.cluster.threads_per_worker)
        seconds, used = float(wall[rank == r].sum()), float(cpu[rank == r].sum())
        if used > seconds * budget * (1 + UTILISATION_TOLERANCE) + TICK_S * budget:
            usage = f"rank {r:.0f} used {used / seconds / budget:.0%} of its {budget} core(s)"
            if int(r) in pinned:
                yield Doubt(code="impossible-utilisation", message=f"{usage}, to which it is pinned", hint=_REPORT)
            else:
                yield Doubt(
                    code="over-budget",
                    message=f"{usage}: it is not pinned, and the comparison is not one of equal budgets",
                    hint="give the framework threads_per_worker threads, or run it where ranks can be pinned",
                )
            return


def _loss(numbers: Numbers) -> Iterator[Doubt]:
    record, _, summary = numbers
    samples = record.samples
    losses = [] if samples is None else [loss for loss in samples["loss"].to_pylist() if loss is not None]
    if not losses:
        return
    broken = int((~np.isfinite(losses)).sum())
    if broken:
        yield Doubt(
            code="loss-not-finite",
            message=f"{broken} of {len(losses)} losses are not finite, and such arithmetic has its own speed",
            hint="lower the learning rate or use another precision",
        )
    elif summary.n_steps > 2 and len(set(losses)) == 1:
        yield Doubt(
            code="loss-still",
            message=f"the loss is {losses[0]:.6g} in every step: nothing is learned",
            hint="check that the optimizer updates the weights: paceline doctor",
        )


def _spread(numbers: Numbers) -> Iterator[Doubt]:
    _, measured, _ = numbers
    steps = by_step(measured, floats(measured, "wall_s"))
    if steps.shape[1] < 2:
        return
    mean_steps = steps.mean(axis=0)
    spread = relative_spread(mean_steps.tolist())
    if spread > SPREAD_LIMIT:
        yield Doubt(
            code="spread",
            message=f"step times spread by {spread:.0%} (standard deviation ÷ mean)",
            hint="close other programs, or ask for more steps: steps under [measure]",
        )
    if len(mean_steps) >= MIN_TREND_STEPS:
        trend = drift(mean_steps.tolist())
        if abs(trend.relative_change) > DRIFT_LIMIT and trend.p < DRIFT_P:
            word = "slower" if trend.relative_change > 0 else "faster"
            yield Doubt(
                code="drift",
                message=f"steps became {abs(trend.relative_change):.0%} {word} during the run",
                hint="ask for more warm-up (warmup_steps under [measure]); slower: look for heat or a leak",
            )


CHECKS: tuple[Callable[[Numbers], Iterator[Doubt]], ...] = (
    _throughput,
    _program,
    _phases,
    _rank_sums,
    _utilisation,
    _ranks,
    _steps,
    _loss,
    _spread,
    _derived,
)
"""The checks of training runs, in the order in which their doubts are shown."""
CHECKS_OF_COLLECTIVES = (_throughput, _phases, _utilisation, _ranks, _steps)
"""The checks of stand-alone collectives. Their step times differ with the message size, and ranks that only send finish
before those that receive, so the spread and the sums over ranks are not checked."""
