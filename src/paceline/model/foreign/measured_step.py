"""One measured step of a run, as spans on the streams of its ranks."""

from __future__ import annotations

import numpy as np

from paceline.errors import PacelineError
from paceline.model.foreign.traces import Span
from paceline.record.lockstep import floats
from paceline.record.phases import COMMUNICATION, FUSED
from paceline.record.record import Record
from paceline.record.summary import by_step, measured_samples, phase_columns


def measured_spans(record: Record) -> list[Span]:
    """The phases of the step closest to the median step time, on every rank, in the time of the emulated cluster.

    Communication that is hidden behind compute is not visible and is part of the compute phases.

    Raises:
        PacelineError: The run has no samples.
    """
    measured = measured_samples(record)
    if measured is None:
        raise PacelineError(
            f"{record.run_id}: the run has no samples", hint="choose another run: paceline export STUDY"
        )
    wall = by_step(measured, floats(measured, "wall_s")) * record.trial.true_scale
    lengths = wall.max(axis=0)
    step = int(np.abs(lengths - np.median(lengths)).argmin())
    phases = {
        name: by_step(measured, np.nan_to_num(column))[:, step] * record.trial.true_scale
        for name, column in phase_columns(measured).items()
    }
    if not phases:
        phases = {FUSED: wall[:, step]}
    sent = record.input_facts.gradient_bytes
    spans: list[Span] = []
    for rank in range(len(wall)):
        now = 0.0
        for count, (name, seconds) in enumerate(phases.items()):
            carries = name == COMMUNICATION and record.trial.workers > 1
            spans.append(
                Span(
                    name=name,
                    rank=rank,
                    stream="communication" if carries else "compute",
                    start_s=now,
                    duration_s=float(seconds[rank]),
                    bytes=sent or 0.0 if carries else None,
                    after=(count - 1,) if count else (),
                )
            )
            now += float(seconds[rank])
    return spans
