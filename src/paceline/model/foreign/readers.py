"""Parsers for nccl-tests and OSU tables, Kineto profiles and layer traces, whose values a calibration can use. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import PacelineError, documented
from paceline.model.equations.arrays import Floats
from paceline.model.equations.ready import Ready
from paceline.model.foreign.tables import Row, number
from paceline.model.foreign.traces import spans_of_kineto

US = 1e-6
BYTES_PER_PARAMETER = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeTable:
    """Time of a collective by message size."""

    operation: str
    ranks: int | None
    """Number of ranks; None if the text does not contain it."""
    sizes: Floats
    seconds: Floats


NCCL_OPERATIONS = {
    "all_reduce_perf": "all_reduce",
    "all_gather_perf": "all_gather",
    "reduce_scatter_perf": "reduce_scatter",
    "broadcast_perf": "broadcast",
    "sendrecv_perf": "send_recv",
}
OSU_OPERATIONS = {
    "Allreduce": "all_reduce",
    "Allgather": "all_gather",
    "Reduce_scatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Latency Test": "send_recv",
}


def nccl_tests(text: str) -> SizeTable:
    """Parse the output of nccl-tests: size, count, type, (redop, root,) time, algbw, busbw, out-of-place run first.

    Raises:
        PacelineError: The text has no such table.
    """
    operation = next((NCCL_OPERATIONS[name] for name in NCCL_OPERATIONS if name in text), "all_reduce")
    ranks = sum(bool(re.match(r"#\s+Rank\s+\d+", line)) for line in text.splitlines()) or None
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or not words[0].isdigit() or not words[1].isdigit():
            continue
        # The first number after the words is the time in µs; only some operations have redop and root.
        tail = [float(word) for word in words[2:] if re.fullmatch(r"-?\d+(\.\d+)?", word)]
        times = [value for value in tail if value >= 0]
        if times:
            rows.append((float(words[0]), times[0] * US))
    return _table(operation, ranks, rows, "nccl-tests")


def osu(text: str) -> SizeTable:
    """Parse the output of an OSU micro-benchmark: size and average latency in µs.

    Raises:
        PacelineError: The text has no such table.
    """
    operation = next((OSU_OPERATIONS[name] for name in OSU_OPERATIONS if name in text), "all_reduce")
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].isdigit() and number(words[1]) is not None:
            rows.append((float(words[0]), float(words[1]) * US))
    return _table(operation, None, rows, "OSU")


def _table(operation: str, ranks: int | None, rows: Sequence[tuple[float, float]], kind: str) -> SizeTable:
    kept = [(size, seconds) for size, seconds in rows if size > 0 and seconds > 0]
    if len(kept) < 2:
        raise PacelineError(f"this text has no table of {kind}", hint="import the whole output of the benchmark")
    sizes, seconds = (np.array(column) for column in zip(*kept, strict=True))
    return SizeTable(operation=operation, ranks=ranks, sizes=sizes, seconds=seconds)


def ready_of_layer_trace(rows: Sequence[Row]) -> Ready:
    """When gradients become ready, from a layer trace.

    The columns are Id, Name, Forward, Backward and Comm (µs) and Size (bytes), or those of our own schema.

    Raises:
        PacelineError: Columns are missing.
    """
    first = rows[0] if rows else {}
    if {"Backward", "Size"} <= set(first):
        backward, sizes = "Backward", "Size"
        ordered, scale = list(reversed(rows)), 1.0
    elif {"backward_compute_us", "num_params", "tensor_id"} <= set(first):
        backward, sizes = "backward_compute_us", "num_params"
        ordered, scale = sorted(rows, key=lambda row: -int(row["tensor_id"])), float(BYTES_PER_PARAMETER)
    else:
        raise PacelineError(
            "this is not a layer trace: it needs the columns Backward and Size, or backward_compute_us and num_params",
            hint=documented("reference/tables"),
        )
    times = np.cumsum([number(row[backward]) or 0.0 for row in ordered])
    if times[-1] <= 0:
        raise PacelineError("all backward times in this trace are zero", hint="export the trace with backward times")
    kept = [
        (float(time / times[-1]), (number(row[sizes]) or 0.0) * scale) for time, row in zip(times, ordered, strict=True)
    ]
    kept = [(fraction, size) for fraction, size in kept if size > 0]
    return Ready(
        fractions=tuple(fraction for fraction, _ in kept), bytes=tuple(size for _, size in kept), measured=True
    )


COMMUNICATES = re.compile(r"nccl|gloo|all_?reduce|allgather|reduce_?scatter|broadcast", re.IGNORECASE)
STEP = re.compile(r"ProfilerStep#\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimes:
    """Mean seconds per step of a profile."""

    step: float
    communication: float
    """All communication, hidden or exposed."""
    exposed: float


def step_of_kineto(text: str) -> StepTimes:
    """The mean step of a PyTorch profile.

    Raises:
        PacelineError: The profile marks no steps.
    """
    spans = spans_of_kineto(text)
    steps = [span for span in spans if STEP.fullmatch(span.name)]
    if not steps:
        raise PacelineError(
            "this trace marks no steps", hint="call profiler.step() after each step, and export_chrome_trace at the end"
        )
    begin, end = min(span.start_s for span in steps), max(span.start_s + span.duration_s for span in steps)
    inside = [span for span in spans if begin <= span.start_s < end and not STEP.fullmatch(span.name)]
    communication = _union([(s.start_s, s.start_s + s.duration_s) for s in inside if COMMUNICATES.search(s.name)])
    compute = _union([(s.start_s, s.start_s + s.duration_s) for s in inside if not COMMUNICATES.search(s.name)])
    hidden = _overlap(communication, compute)
    total = sum(stop - start for start, stop in communication)
    count = len(steps)
    return StepTimes(
        step=sum(span.duration_s for span in steps) / count,
        communication=total / count,
        exposed=max(0.0, total - hidden) / count,
    )


def _union(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _overlap(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> float:
    total, j = 0.0, 0
    for start, stop in first:
        while j < len(second) and second[j][1] <= start:
            j += 1
        k = j
        while k < len(second) and second[k][0] < stop:
            total += min(stop, second[k][1]) - max(start, second[k][0])
            k += 1
    return total
