"""One row per trial and machine: what was measured, with its intervals, and what failed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from paceline.compare.efficiency import Scaling
from paceline.compare.runs import Runs
from paceline.plan.vocabulary import BatchScaling, PhasesBy, StrategyClass
from paceline.record.doubt_codes import DoubtCode
from paceline.record.phases import Mixed, PhaseTime, mixed_of
from paceline.record.record import OutcomeKind
from paceline.record.summary import RunSummary
from paceline.stats import mean_interval, plain_interval
from paceline.stats.estimate import Estimate, finite
from paceline.stats.known_by import KnownBy

RowOutcome = Literal[
    "ok",
    "partly failed",
    "not run",
    "skipped",
    "no numbers",
    "failed",
    "timed_out",
    "out_of_memory",
    "unavailable",
]
"""How the runs of a row ended."""
FAILED_ALIKE: dict[OutcomeKind, RowOutcome] = {
    OutcomeKind.TIMED_OUT: "timed_out",
    OutcomeKind.OUT_OF_MEMORY: "out_of_memory",
    OutcomeKind.UNAVAILABLE: "unavailable",
}
"""How all runs of a row failed → the outcome of the row; it is "failed" for other outcomes and for mixed ones."""
WITHOUT_NUMBERS = frozenset({"samples-missing", "samples-damaged"})
"""The doubts of a run whose samples cannot be used: it is listed, but gives no numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One part of the step."""

    time: Estimate
    """The seconds per step."""
    share: float
    """The share of the step time."""
    by: PhasesBy
    """The source: measured by "timers" or simulated by a "law"; derived from "differences" of separate programs, from
    "operators" of a profile, or from "timers" of further steps."""

    @property
    def below_noise(self) -> bool:
        """Whether it is not above zero within its interval; a derived time can be negative."""
        return self.time.value <= 0 or (self.time.low is not None and self.time.low <= 0)

    def to_json(self) -> dict[str, object]:
        return self.time.to_json() | {"share": finite(self.share), "by": self.by}


@dataclass(frozen=True, kw_only=True, slots=True)
class RowWarning:
    """A doubt about one or more runs of the row."""

    code: DoubtCode
    message: str
    """What was seen in the first of these runs."""
    hint: str
    """What to do about it."""
    n_runs: int
    """The number of these runs."""

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message, "hint": self.hint, "n_runs": self.n_runs}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One trial on one machine."""

    key: str
    """The key of the row: the id of the trial, with "@machine" if the trial has several rows."""
    trial: str
    """The id of the trial."""
    framework: str
    strategy: str
    strategy_class: StrategyClass
    workload: str
    """The name of the model."""
    workers: int
    hosts: int
    network: str | None
    """The label of the emulated links; None if the links are not emulated."""
    outcome: RowOutcome
    reason: str | None
    """Why it is not ok."""
    throughput: Estimate | None
    """Samples per second of all workers together."""
    step_s: Estimate | None
    efficiency: Estimate | None
    """The throughput per worker ÷ that with the fewest workers of its family."""
    efficiency_note: str | None
    """Why there is no efficiency."""
    speedup: Estimate | None
    """The throughput ÷ that of the base."""
    base: str | None
    """The key of the row that the efficiency refers to."""
    phases: Mapping[str, Phase]
    """The measured phases, in the order of the step."""
    phases_derived: Mapping[str, Phase]
    """The derived phases of a fused step, if they could be derived."""
    phases_mixed: Mixed | None
    """The phases that cannot be separated; None if all can."""
    communication_transfer_s: Estimate | None
    """The exchange itself: the communication of the rank that waited least. None if not timed, or for one rank."""
    communication_waiting_s: Estimate | None
    """The rest of that phase, in which ranks wait for slower ones, as a mean over ranks."""
    setup_s: Estimate | None
    """The time from process start to the first step of the slowest rank, including compilation before it."""
    compile_s: Estimate | None
    """Tracing and compilation before the first step; None if the framework does not report it."""
    compile_in_first_step_s: Estimate | None
    """Compilation in the first step; None if the framework does not report it."""
    first_step_s: Estimate | None
    """The first step, which no other number includes; None without warm-up."""
    warnings: tuple[RowWarning, ...]
    label: str
    """What distinguishes it from the other rows, in words."""
    batch_per_worker: int
    batch_global: int
    scaling: BatchScaling
    threads_per_worker: int
    device: str
    n_runs: int
    """The runs that its numbers rest on."""
    n_failed: int
    cpu_utilisation: Estimate | None
    """The share of the workers' cores that was used; 1 means all of them."""
    peak_rss_bytes: Estimate | None
    """The peak resident memory of all workers together."""
    machine: str | None
    fingerprint: str | None
    simulated: bool
    """Whether the times are simulated, not measured."""
    knobs: Mapping[str, object] = field(default_factory=dict)
    """Every knob of the framework with its value."""

    def to_json(self) -> dict[str, object]:
        data: dict[str, object] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name, value in data.items():
            if isinstance(value, Estimate):
                data[name] = value.to_json()
        for name in ("phases", "phases_derived"):
            data[name] = {phase: part.to_json() for phase, part in getattr(self, name).items()}
        data["phases_mixed"] = self.phases_mixed.to_json() if self.phases_mixed else None
        data["warnings"] = [warning.to_json() for warning in self.warnings]
        data["knobs"] = dict(self.knobs)
        return data


def make_row(runs: Runs, *, key: str, label: str, scaling: Scaling, base: str | None, skip: str | None = None) -> Row:
    """Returns the row of one group of runs."""
    trial = runs.trial
    outcome, reason = _outcome(runs, skip)
    return Row(
        key=key,
        trial=trial.id,
        framework=trial.framework.name,
        strategy=trial.framework.strategy,
        strategy_class=trial.framework.strategy_class,
        workload=trial.workload.model,
        workers=trial.workers,
        hosts=trial.cluster.hosts,
        network=trial.cluster.network.label if trial.cluster.network else None,
        outcome=outcome,
        reason=reason,
        throughput=_mean(runs, "throughput", "samples/s"),
        step_s=_mean(runs, "step_s", "s"),
        efficiency=scaling.efficiency,
        efficiency_note=scaling.note,
        speedup=scaling.speedup,
        base=base,
        phases=_phases(runs, lambda summary: summary.phases),
        phases_derived=_phases(runs, lambda summary: summary.phases_derived),
        phases_mixed=next((mixed for record, _ in runs.measured if (mixed := mixed_of(record.ranks))), None),
        communication_transfer_s=_mean(runs, "communication_transfer_s", "s"),
        communication_waiting_s=_plain_mean(runs, "communication_waiting_s", "s"),
        setup_s=_mean(runs, "setup_s", "s"),
        compile_s=_mean(runs, "compile_s", "s"),
        compile_in_first_step_s=_mean(runs, "compile_in_first_step_s", "s"),
        first_step_s=_mean(runs, "first_step_s", "s"),
        warnings=_warnings(runs),
        label=label,
        batch_per_worker=trial.workload.batch_per_worker,
        batch_global=trial.batch_global,
        scaling=trial.workload.scaling,
        threads_per_worker=trial.cluster.threads_per_worker,
        device=trial.cluster.device,
        n_runs=len(runs.measured),
        n_failed=len(runs.failed),
        cpu_utilisation=_mean(runs, "cpu_utilisation", "1"),
        peak_rss_bytes=_mean(runs, "peak_rss_bytes", "B"),
        machine=runs.machine,
        fingerprint=runs.fingerprint,
        simulated=trial.framework.simulated,
        knobs=trial.framework.knobs,
    )


def _mean(runs: Runs, name: str, unit: str) -> Estimate | None:
    values = list(runs.by_round(name).values())
    return _over(values, unit, runs.measured_by) if values else None


def _plain_mean(runs: Runs, name: str, unit: str) -> Estimate | None:
    """Returns the plain mean, for differences near zero, whose logarithms would exaggerate the spread between runs."""
    values = list(runs.by_round(name).values())
    return plain_interval(values, unit=unit, by=runs.measured_by) if values else None


def _over(values: list[float], unit: str, by: KnownBy) -> Estimate:
    """Returns the mean over runs, of logarithms if all values are positive, so that no interval reaches below zero."""
    interval_of = mean_interval if min(values) > 0 else plain_interval
    return interval_of(values, unit=unit, by=by)


def _phases(runs: Runs, phases_of: Callable[[RunSummary], Mapping[str, PhaseTime]]) -> dict[str, Phase]:
    times: dict[str, list[PhaseTime]] = {}
    for _, summary in runs.measured:
        for name, phase in phases_of(summary).items():
            times.setdefault(name, []).append(phase)
    return {
        name: Phase(
            time=_over([phase.seconds for phase in phases], "s", runs.measured_by),
            share=sum(phase.share for phase in phases) / len(phases),
            by=phases[0].by,
        )
        for name, phases in times.items()
    }


def _outcome(runs: Runs, skip: str | None) -> tuple[RowOutcome, str | None]:
    if not runs.failed:
        if runs.measured:
            return "ok", None
        if runs.machine is not None:
            lost = {doubt.code for record in runs.empty for doubt in record.doubts} & WITHOUT_NUMBERS
            why = "their samples are missing or damaged" if lost else "no step was measured"
            return "no numbers", f"its runs succeeded, but {why}"
        return ("skipped", skip) if skip else ("not run", "no record yet")
    reasons = Counter(_why(record.outcome.stage, record.outcome.reason) for record in runs.failed)
    kinds = {record.outcome.kind for record in runs.failed}
    (reason, _), *others = reasons.most_common()
    total = len(runs.failed) + len(runs.measured)
    counted = f"{len(runs.failed)} of {total} runs: {reason}"
    if others:
        counted += f" (and {len(others)} other reason{'s' if len(others) > 1 else ''})"
    if runs.measured:
        return "partly failed", counted
    return (FAILED_ALIKE.get(kinds.pop(), "failed") if len(kinds) == 1 else "failed"), counted


def _why(stage: str | None, reason: str | None) -> str:
    words = reason or "no reason known"
    return f"{words} ({stage})" if stage else words


def _warnings(runs: Runs) -> tuple[RowWarning, ...]:
    by_code: dict[DoubtCode, RowWarning] = {}
    for record in (*(record for record, _ in runs.measured), *runs.empty):
        doubts = {doubt.code: doubt for doubt in reversed(record.doubts)}
        for code, doubt in doubts.items():
            first = by_code.get(code)
            by_code[code] = RowWarning(
                code=code,
                message=first.message if first else doubt.message,
                hint=first.hint if first else doubt.hint,
                n_runs=first.n_runs + 1 if first else 1,
            )
    warnings = list(by_code.values())
    if len(runs.measured) == 1:
        warnings.append(
            RowWarning(
                code="single-run",
                message="one run says nothing about spread: no interval, no verdict",
                hint="raise measure.repeats in the study and run it again",
                n_runs=1,
            )
        )
    if runs.retried:
        warnings.append(
            RowWarning(
                code="retried",
                message=f"{runs.retried} earlier attempt(s) failed before a run succeeded",
                hint="look at them: paceline export",
                n_runs=runs.retried,
            )
        )
    return tuple(warnings)
