"""Reads what the processes of a run wrote: the event lines of ranks into typed events, and the end of logs.

A rank that was killed may have stopped in the middle of a line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

LOG_TAIL_LINES = 20
LOG_TAIL_BYTES = 16 * 2**10
OUTPUT_BYTES = 64 * 2**10
"""Bytes that are kept of the output of each process of a user's program."""
COLUMNS = ("start_s", "wall_s", "cpu_s", "loss")
SOMETIMES = ("starved_s", "bytes")
"""Columns that only some ranks write: where the system tells it, and of a collective."""

Column = Sequence[float | None]
"""One number per step; None where there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HelloEvent:
    """The process of the rank is there."""

    pid: int | None = None
    python: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadyEvent:
    """The rank is about to take its first step."""

    framework_version: str | None = None
    parameters: int | None = None
    setup_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DoneEvent:
    """The rank has taken all steps."""

    peak_rss_bytes: float | None = None
    cpu_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LastWord:
    """Why a rank ended before it had taken all steps."""

    kind: Literal["crashed", "ended"]
    """ended: because we asked for it."""
    unix_s: float | None = None
    error: str = "error"
    """Name of the exception."""
    message: str = ""
    traceback: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBlock:
    """Steps that a rank reported together; all columns are equally long."""

    kind: str
    """"first", "warmup" or "measured"."""
    first: int
    """Number of the first step."""
    columns: Mapping[str, Column]
    """Those of COLUMNS, and some of SOMETIMES."""
    phases: Mapping[str, Column] = field(default_factory=dict)
    origin_unix_s: float | None = None
    """Unix time at which `start_s` is zero."""

    @property
    def count(self) -> int:
        """Number of steps."""
        return len(self.columns["wall_s"])


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerBlock:
    """Layer times of steps that a rank reported together."""

    first: int
    """Number of the first step."""
    seconds: Mapping[str, Mapping[str, Sequence[float]]]
    """"forward" and "gradient_ready" → layer → one number per step."""


@dataclass(slots=True)
class RankEvents:
    """All events of one rank."""

    rank: int
    hello: HelloEvent | None = None
    ready: ReadyEvent | None = None
    done: DoneEvent | None = None
    last_word: LastWord | None = None
    blocks: list[StepBlock] = field(default_factory=list)
    layers: list[LayerBlock] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    evidence: dict[str, object] = field(default_factory=dict)
    """In runs of a fairness proof: what is shown → tensor → norm and sketch."""
    roundings: list[dict[str, object]] = field(default_factory=list)
    """Of the reference of a fairness proof: what each of its float32 trainings shows."""
    notes: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Number of steps that were reported."""
        return sum(block.count for block in self.blocks)

    @property
    def stage(self) -> str:
        """How far the rank came, in words."""
        if self.blocks:
            last = self.blocks[-1]
            return f"after step {last.first + last.count - 1}"
        if self.ready:
            return "in the first step"
        return "during setup" if self.hello else "at the start"


def read_events(path: Path, rank: int, clock_ahead_s: float = 0.0) -> RankEvents:
    """The events of one rank, in our time; no events where there is no file.

    Args:
        path: the file of event lines.
        rank: the rank that wrote it.
        clock_ahead_s: how far the clock of its host is ahead of ours.
    """
    events = RankEvents(rank)
    if not path.exists():
        return events
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            _take(events, _in_our_time(json.loads(line), clock_ahead_s))
        except (ValueError, TypeError, KeyError, AttributeError):
            # The line was cut off by a kill, or is not of our protocol; the lines before and after it count.
            events.notes.append(f"line {number} of its events could not be read")
    return events


def _in_our_time(event: dict[str, Any], clock_ahead_s: float) -> dict[str, Any]:
    stamped = [name for name in ("t", "origin_unix_s") if name in event]
    return event | {name: event[name] - clock_ahead_s for name in stamped}


def _take(events: RankEvents, event: dict[str, Any]) -> None:
    kind = event["event"]
    if kind == "hello":
        events.hello = HelloEvent(pid=event.get("pid"), python=event.get("python"))
    elif kind == "ready":
        events.ready = ReadyEvent(
            framework_version=event.get("framework_version"),
            parameters=event.get("parameters"),
            setup_s=event.get("setup_s"),
        )
    elif kind == "done":
        events.done = DoneEvent(peak_rss_bytes=event.get("peak_rss_bytes"), cpu_s=event.get("cpu_s"))
    elif kind in {"crashed", "ended"}:
        events.last_word = LastWord(
            kind=kind,
            unix_s=event.get("t"),
            error=event.get("error", "error"),
            message=event.get("message", ""),
            traceback=tuple(event.get("traceback", ())),
        )
    elif kind == "steps":
        events.blocks.append(_step_block(event))
    elif kind == "layers":
        events.layers.append(_layer_block(event))
    elif kind == "facts":
        events.facts |= event["facts"]
    elif kind == "evidence":
        events.evidence[event["what"]] = event["tensors"]
    elif kind == "rounding":
        events.roundings.append({what: event[what] for what in ("losses", "gradients", "weights", "statistics")})
    elif kind == "note":
        events.notes.append(event["message"])
    if kind in {"hello", "ready", "done"}:
        events.facts |= event.get("facts", {})


def _step_block(event: dict[str, Any]) -> StepBlock:
    """A block of steps, every column of which is as long as the others and made of numbers."""
    columns: dict[str, Column] = {name: event[name] for name in COLUMNS}
    columns |= {name: event[name] for name in SOMETIMES if name in event}
    block = StepBlock(
        kind=str(event["kind"]),
        first=int(event["first"]),
        columns=columns,
        phases=dict(event["phases"]),
        origin_unix_s=event.get("origin_unix_s"),
    )
    for values in (*block.columns.values(), *block.phases.values()):
        if len(values) != block.count or not all(value is None or isinstance(value, int | float) for value in values):
            raise ValueError("a column that does not fit")
    return block


def _layer_block(event: dict[str, Any]) -> LayerBlock:
    seconds = {what: dict(event.get(f"{what}_s", {})) for what in ("forward", "gradient_ready")}
    return LayerBlock(first=event.get("first", 0), seconds=seconds)


def log_tail(path: Path) -> tuple[str, ...]:
    """The last lines that a process wrote to its log."""
    return tuple(log_end(path, LOG_TAIL_BYTES).splitlines()[-LOG_TAIL_LINES:])


def log_end(path: Path, most_bytes: int = OUTPUT_BYTES) -> str:
    """The end of a process's log, without the line that the limit cuts; "" if there is no log."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        cut = max(0, path.stat().st_size - most_bytes)
        file.seek(cut)
        content = file.read()
    return (content.partition(b"\n")[2] if cut else content).decode("utf-8", errors="replace")
