"""A run's numbers in true time: seconds of the cluster that a site emulates, not of the machine that emulates it.

Samples, and the summaries that are kept of them, hold seconds as they passed. Whatever compares, explains or shows
times asks here, so that a trial has one step time everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paceline.record.lockstep import Lockstep, RankTimes
from paceline.record.phases import PhaseTime
from paceline.record.record import Record
from paceline.record.summary import RunSummary, summarize


def true_summary(record: Record) -> RunSummary | None:
    """The run's numbers in true time, or None when no step was measured."""
    summary, scale = summarize(record), record.trial.true_scale
    return summary if summary is None or scale == 1 else _scaled(summary, scale)


def _scaled(summary: RunSummary, scale: float) -> RunSummary:
    return replace(
        summary,
        throughput=summary.throughput / scale,
        step_s=summary.step_s * scale,
        phases=_phases(summary.phases, scale),
        phases_derived=_phases(summary.phases_derived, scale),
        communication_transfer_s=_times(summary.communication_transfer_s, scale),
        communication_waiting_s=_times(summary.communication_waiting_s, scale),
        first_step_s=_times(summary.first_step_s, scale),
        compile_s=_times(summary.compile_s, scale),
        compile_in_first_step_s=_times(summary.compile_in_first_step_s, scale),
        setup_s=_times(summary.setup_s, scale),
        lockstep=summary.lockstep and _lockstep(summary.lockstep, scale),
    )


def _lockstep(together: Lockstep, scale: float) -> Lockstep:
    return replace(
        together,
        step_s=together.step_s * scale,
        phases_s={name: seconds * scale for name, seconds in together.phases_s.items()},
        exchange_s=_times(together.exchange_s, scale),
        passes=together.passes and _ranks(together.passes, scale),
        others=together.others and _ranks(together.others, scale),
        late_input_s=together.late_input_s * scale,
        starved_s=together.starved_s * scale,
    )


def _ranks(times: RankTimes, scale: float) -> RankTimes:
    # The spread is that of logarithms, and the same on every scale.
    return replace(
        times, means_s=tuple(seconds * scale for seconds in times.means_s), longest_s=times.longest_s * scale
    )


def _phases(phases: Mapping[str, PhaseTime], scale: float) -> dict[str, PhaseTime]:
    return {name: replace(phase, seconds=phase.seconds * scale) for name, phase in phases.items()}


def _times(seconds: float | None, scale: float) -> float | None:
    return None if seconds is None else seconds * scale
