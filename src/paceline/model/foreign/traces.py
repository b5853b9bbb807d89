"""A step in formats of other tools: Chrome and Perfetto traces, and Chakra execution traces."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import message_costs
from paceline.model.equations.parameters import INDEX
from paceline.model.equations.stack import stack_of
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration
from paceline.plan.vocabulary import REPLICATED

MICROSECONDS = 1e6
COMP_NODE, COMM_COLL_NODE = 4, 7
ALL_REDUCE = 0
CHAKRA_VERSION = "0.0.4"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """An activity on a stream of a rank."""

    name: str
    rank: int
    stream: str
    start_s: float
    duration_s: float
    bytes: float | None = None
    """Size of a message; None for compute."""
    after: Sequence[int] = field(default_factory=tuple)
    """Indices of spans of the same rank that must end first."""


def chrome_trace(spans: Iterable[Span], **about: object) -> str:
    """A trace for chrome://tracing and ui.perfetto.dev: one process per rank and one thread per stream."""
    spans = list(spans)
    streams = {name: number for number, name in enumerate(dict.fromkeys(span.stream for span in spans))}
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": f"rank {rank}"}}
        for rank in sorted({span.rank for span in spans})
    ]
    events += [
        {"ph": "M", "name": "thread_name", "pid": rank, "tid": number, "args": {"name": name}}
        for rank in sorted({span.rank for span in spans})
        for name, number in streams.items()
    ]
    for span in spans:
        event = {
            "ph": "X",
            "name": span.name,
            "pid": span.rank,
            "tid": streams[span.stream],
            "ts": span.start_s * MICROSECONDS,
            "dur": span.duration_s * MICROSECONDS,
            "cat": "communication" if span.bytes is not None else "computing",
        }
        events.append(event if span.bytes is None else {**event, "args": {"bytes": span.bytes}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about})


def chakra_trace(spans: Sequence[Span]) -> bytes:
    """The execution trace of one rank for MLCommons Chakra: protobuf messages, each preceded by its length.

    The few fields are encoded here to avoid dependencies on a protobuf compiler and runtime.
    """
    written = [_message(_text(1, CHAKRA_VERSION))]
    for number, span in enumerate(spans):
        carries = span.bytes is not None
        attributes = [_attribute("is_cpu_op", _bool(not carries))]
        if span.bytes is not None:
            attributes += [
                _attribute("comm_type", _int64(ALL_REDUCE)),
                _attribute("comm_size", _int64(int(span.bytes))),
            ]
        node = _varint_field(1, number) + _text(2, span.name)
        node += _varint_field(3, COMM_COLL_NODE if carries else COMP_NODE)
        node += b"".join(_varint_field(5, before) for before in span.after)
        node += _varint_field(6, round(span.start_s * MICROSECONDS))
        node += _varint_field(7, round(span.duration_s * MICROSECONDS))
        node += b"".join(_bytes(10, attribute) for attribute in attributes)
        written.append(_message(node))
    return b"".join(written)


def _attribute(name: str, value: bytes) -> bytes:
    return _text(1, name) + value


def _bool(value: bool) -> bytes:
    return _varint_field(27, int(value))


def _int64(value: int) -> bytes:
    return _varint_field(9, value)


def _message(body: bytes) -> bytes:
    return _varint(len(body)) + body


def _text(field_number: int, text: str) -> bytes:
    return _bytes(field_number, text.encode())


def _bytes(field_number: int, body: bytes) -> bytes:
    return _varint(field_number << 3 | 2) + _varint(len(body)) + body


def _varint_field(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += struct.pack("B", value & 0x7F | 0x80)
        value >>= 7
    return out + struct.pack("B", value)


def spans_of_kineto(text: str) -> list[Span]:
    """The complete events of a trace from PyTorch's profiler (Kineto), of one rank; each thread is a stream."""
    data = json.loads(text)
    events = data["traceEvents"] if isinstance(data, dict) else data
    rank = int((data.get("distributedInfo") or {}).get("rank", 0)) if isinstance(data, dict) else 0
    return [
        Span(
            name=str(event["name"]),
            rank=rank,
            stream=f"{event.get('pid')}/{event.get('tid')}",
            start_s=float(event["ts"]) / MICROSECONDS,
            duration_s=float(event.get("dur", 0)) / MICROSECONDS,
        )
        for event in events
        if event.get("ph") == "X"
    ]


def predicted_spans(calibration: Calibration, conditions: Conditions, ranks: int = 1) -> list[Span]:
    """One predicted step on the streams "compute" and "communication", equal on each rank."""
    terms, stack = step_terms(calibration.vector, conditions, calibration.straggling), stack_of([conditions])
    compute_phases = [
        ("input", terms.input_s),
        ("framework", terms.overhead_s),
        ("forward", terms.forward_s),
        ("backward", terms.backward_s + terms.contention_s + terms.waiting_s),
    ]
    spans: list[Span] = []
    for rank in range(ranks):
        now, first = 0.0, len(spans)
        for name, seconds in compute_phases:
            before = (len(spans) - first - 1,) if len(spans) > first else ()
            spans.append(Span(name=name, rank=rank, stream="compute", start_s=now, duration_s=seconds, after=before))
            now += seconds
        backward = len(spans) - first - 1
        end = now
        if terms.exposed_s and conditions.sharing != REPLICATED:
            # Communication overlaps with compute in several pieces; the trace shows the exposed part as one span.
            spans.append(
                Span(
                    name="exposed communication",
                    rank=rank,
                    stream="communication",
                    start_s=now,
                    duration_s=terms.exposed_s,
                    bytes=conditions.exchanged,
                    after=(backward,),
                )
            )
            end = now + terms.exposed_s
        elif conditions.workers > 1 and conditions.messages:
            latencies, carried = (costs[0, 0] for costs in message_costs(calibration.vector[None, :], stack))
            begun = now - compute_phases[-1][1]
            ready = _fractions(calibration, conditions) * compute_phases[-1][1] + begun
            end = begun
            for index, (when, cost) in enumerate(zip(ready, latencies + carried, strict=True)):
                end = max(end, float(when))
                spans.append(
                    Span(
                        name=f"all-reduce {index}",
                        rank=rank,
                        stream="communication",
                        start_s=end,
                        duration_s=float(cost),
                        bytes=conditions.messages[index],
                        after=(len(spans) - first - 1,) if index else (backward - 1,),
                    )
                )
                end += float(cost)
        last = len(spans) - first - 1
        spans.append(
            Span(
                name="update",
                rank=rank,
                stream="compute",
                start_s=max(now, end),
                duration_s=terms.update_s,
                after=(backward, last) if last != backward else (backward,),
            )
        )
    return spans


def _fractions(calibration: Calibration, conditions: Conditions) -> Floats:
    """When each message is ready, as a fraction of the backward pass."""
    if conditions.fractions is not None:
        return np.asarray(conditions.fractions)
    return np.full(len(conditions.messages), float(calibration.vector[INDEX["start"]]))
