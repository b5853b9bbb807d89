"""Measurements that other tools wrote, as calibration: nccl-tests and OSU tables, Kineto and layer traces.

What is read becomes the same observations that records give. Pure but for reading text that is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import PacelineError, documented
from paceline.model.equations.ready import Ready
from paceline.model.equations.step import Floats
from paceline.model.foreign.tables import Row, number
from paceline.model.foreign.traces import spans_of_kineto

US = 1e-6
BYTES_PER_PARAMETER = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeTable:
    """Time of a collective against message size."""

    operation: str
    ranks: int | None
    """None: the text does not say."""
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
    """What nccl-tests printed: size, count, type, (redop, root,) time, algbw, busbw of the out-of-place run first.

    Raises:
        PacelineError: there is no such table.
    """
    operation = next((NCCL_OPERATIONS[name] for name in NCCL_OPERATIONS if name in text), "all_reduce")
    ranks = sum(bool(re.match(r"#\s+Rank\s+\d+", line)) for line in text.splitlines()) or None
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or not words[0].isdigit() or not words[1].isdigit():
            continue
        # The first number after the words is the time in µs: redop and root are there for some operations only.
        tail = [float(word) for word in words[2:] if re.fullmatch(r"-?\d+(\.\d+)?", word)]
        times = [value for value in tail if value >= 0]
        if times:
            rows.append((float(words[0]), times[0] * US))
    return _table(operation, ranks, rows, "nccl-tests")


def osu(text: str) -> SizeTable:
    """What an OSU micro-benchmark printed: size and average latency in µs.

    Raises:
        PacelineError: there is no such table.
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
        raise PacelineError(f"no table of {kind} in this text", hint="pass the whole output of the benchmark")
    sizes, seconds = (np.array(column) for column in zip(*kept, strict=True))
    return SizeTable(operation=operation, ranks=ranks, sizes=sizes, seconds=seconds)


def ready_of_layer_trace(rows: Sequence[Row]) -> Ready:
    """When gradients are ready, by a trace with Id, Name, Forward µs, Backward µs, Comm µs, Size bytes; or our schema.

    Raises:
        PacelineError: columns are missing.
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
            "no layer trace: it needs Backward and Size, or backward_compute_us and num_params",
            hint=documented("reference/tables"),
        )
    times = np.cumsum([number(row[backward]) or 0.0 for row in ordered])
    if times[-1] <= 0:
        raise PacelineError("the backward times of this trace are all zero", hint="export them with the trace")
    kept = [
        (float(time / times[-1]), (number(row[sizes]) or 0.0) * scale) for time, row in zip(times, ordered, strict=True)
    ]
    kept = [(fraction, size) for fraction, size in kept if size > 0]
    return Ready(fractions=tuple(one[0] for one in kept), bytes=tuple(one[1] for one in kept), measured=True)


COMMUNICATES = re.compile(r"nccl|gloo|all_?reduce|allgather|reduce_?scatter|broadcast", re.IGNORECASE)
STEP = re.compile(r"ProfilerStep#\d+")


def step_of_kineto(text: str) -> Mapping[str, float]:
    """Mean step of a PyTorch profile: "step", "communication" (all of it), "exposed" (behind which nothing computes).

    Raises:
        PacelineError: no step is marked in it.
    """
    spans = spans_of_kineto(text)
    steps = [span for span in spans if STEP.fullmatch(span.name)]
    if not steps:
        raise PacelineError(
            "no steps in this trace", hint="call profiler.step() after each step, and export_chrome_trace at the end"
        )
    begin, end = min(span.start_s for span in steps), max(span.start_s + span.duration_s for span in steps)
    inside = [span for span in spans if begin <= span.start_s < end and not STEP.fullmatch(span.name)]
    carrying = _union([(s.start_s, s.start_s + s.duration_s) for s in inside if COMMUNICATES.search(s.name)])
    computing = _union([(s.start_s, s.start_s + s.duration_s) for s in inside if not COMMUNICATES.search(s.name)])
    hidden = _overlap(carrying, computing)
    total = sum(stop - start for start, stop in carrying)
    count = len(steps)
    return {
        "step": sum(span.duration_s for span in steps) / count,
        "communication": total / count,
        "exposed": max(0.0, total - hidden) / count,
    }


def _union(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _overlap(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> float:
    total, j = 0.0, 0
    for start, stop in one:
        while j < len(other) and other[j][1] <= start:
            j += 1
        k = j
        while k < len(other) and other[k][0] < stop:
            total += min(stop, other[k][1]) - max(start, other[k][0])
            k += 1
    return total
