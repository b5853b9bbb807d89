"""Read what the ranks wrote: event lines into facts and columns. Tolerates a rank that stopped in mid-line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

LOG_TAIL_LINES = 20
LOG_TAIL_BYTES = 16 * 2**10
OUTPUT_BYTES = 64 * 2**10
"""What is kept of the output of a user's program, of each process."""
SOMETIMES = ("starved_s", "bytes")
"""Columns that only some ranks write: where the system tells it, and of a collective."""


@dataclass(slots=True)
class RankEvents:
    """All that one rank said."""

    rank: int
    hello: dict[str, Any] = field(default_factory=dict)
    ready: dict[str, Any] = field(default_factory=dict)
    done: dict[str, Any] = field(default_factory=dict)
    last_word: dict[str, Any] = field(default_factory=dict)
    """Its crashed or ended event."""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    layers: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    """What → tensor → norm and sketch, in runs of a fairness proof."""
    roundings: list[dict[str, Any]] = field(default_factory=list)
    """Of the reference of a fairness proof: what each of its float32 trainings shows."""
    notes: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Steps that were reported."""
        return sum(len(block["wall_s"]) for block in self.blocks)

    @property
    def stage(self) -> str:
        """How far it came."""
        if self.blocks:
            last = self.blocks[-1]
            return f"after step {last['first'] + len(last['wall_s']) - 1}"
        if self.ready:
            return "in the first step"
        return "during setup" if self.hello else "at the start"


def read_events(path: Path, rank: int, clock_ahead_s: float = 0.0) -> RankEvents:
    """The events of one rank, in our time; an absent file is a rank that said nothing.

    Args:
        clock_ahead_s: how far the clock of its host is ahead of ours.
    """
    events = RankEvents(rank)
    if not path.exists():
        return events
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        try:
            _take(events, _in_our_time(json.loads(line), clock_ahead_s))
        except (ValueError, TypeError, KeyError, AttributeError):
            # Cut off by a kill in mid-write, or not ours; whatever came before it counts.
            events.notes.append(f"line {number} of its events could not be read")
    return events


def _in_our_time(event: dict[str, Any], clock_ahead_s: float) -> dict[str, Any]:
    stamped = [name for name in ("t", "origin_unix_s") if name in event]
    return event | {name: event[name] - clock_ahead_s for name in stamped}


def _take(events: RankEvents, event: dict[str, Any]) -> None:
    kind = event["event"]
    if kind in {"hello", "ready", "done"}:
        setattr(events, kind, event)
        events.facts |= event.get("facts", {})
    elif kind in {"crashed", "ended"}:
        events.last_word = event
    elif kind == "steps":
        events.blocks.append(_block(event))
    elif kind == "layers":
        events.layers.append(event)
    elif kind == "facts":
        events.facts |= event["facts"]
    elif kind == "evidence":
        events.evidence[event["what"]] = event["tensors"]
    elif kind == "rounding":
        events.roundings.append({what: event[what] for what in ("losses", "gradients", "weights", "statistics")})
    elif kind == "note":
        events.notes.append(event["message"])


def _block(event: dict[str, Any]) -> dict[str, Any]:
    """A block of steps, every column as long as the others and made of numbers."""
    count = len(event["wall_s"])
    block = {"kind": str(event["kind"]), "first": int(event["first"])}
    columns = {name: event[name] for name in ("start_s", "wall_s", "cpu_s", "loss")}
    columns |= {name: event[name] for name in SOMETIMES if name in event}
    for values in (*columns.values(), *event["phases"].values()):
        if len(values) != count or not all(value is None or isinstance(value, int | float) for value in values):
            raise ValueError("a column that does not fit")
    return {**block, **columns, "phases": dict(event["phases"]), "origin_unix_s": event.get("origin_unix_s")}


def samples_table(ranks: Sequence[RankEvents]) -> pa.Table | None:
    """Raw samples of all ranks: one row per rank and step; of a collective with the message's bytes."""
    phases = list(dict.fromkeys(name for events in ranks for block in events.blocks for name in block["phases"]))
    columns: dict[str, list[Any]] = {
        name: [] for name in ("rank", "step", "kind", "start_s", "wall_s", "cpu_s", "loss")
    }
    present = [name for name in SOMETIMES if any(_tells(block, name) for events in ranks for block in events.blocks)]
    columns |= {name: [] for name in present}
    columns |= {f"phase.{name}": [] for name in phases}
    for events in ranks:
        own = {name for block in events.blocks for name in block["phases"]}
        for block in events.blocks:
            count = len(block["wall_s"])
            columns["rank"] += [events.rank] * count
            columns["step"] += range(block["first"], block["first"] + count)
            columns["kind"] += [block["kind"]] * count
            for name in ("start_s", "wall_s", "cpu_s", "loss"):
                columns[name] += block[name]
            for name in present:
                columns[name] += block.get(name, [None] * count)
            for name in phases:
                # A rank that has the phase, but in later blocks only, spent no time on it here.
                columns[f"phase.{name}"] += block["phases"].get(name, [0.0 if name in own else None] * count)
    if not columns["rank"]:
        return None
    return pa.table({name: pa.array(values, type=_type(name)) for name, values in columns.items()})


def _tells(block: dict[str, Any], name: str) -> bool:
    return any(value is not None for value in block.get(name, ()))


def layers_table(ranks: Sequence[RankEvents]) -> pa.Table | None:
    """Layer times of all ranks: one row per rank, layer, quantity and step."""
    rows: dict[str, list[Any]] = {name: [] for name in ("rank", "layer", "what", "step", "seconds")}
    for events in ranks:
        for event in events.layers:
            for what in ("forward_s", "gradient_ready_s"):
                for layer, times in event.get(what, {}).items():
                    rows["rank"] += [events.rank] * len(times)
                    rows["layer"] += [layer] * len(times)
                    rows["what"] += [what.removesuffix("_s")] * len(times)
                    rows["step"] += range(event.get("first", 0), event.get("first", 0) + len(times))
                    rows["seconds"] += times
    if not rows["rank"]:
        return None
    return pa.table({name: pa.array(values, type=_type(name)) for name, values in rows.items()})


def _type(column: str) -> pa.DataType:
    if column in {"rank", "step"}:
        return pa.int32()
    if column == "bytes":
        return pa.int64()
    return pa.string() if column in {"kind", "layer", "what"} else pa.float64()


def log_tail(path: Path) -> tuple[str, ...]:
    """The last lines a process wrote to its log."""
    return tuple(log_end(path, LOG_TAIL_BYTES).splitlines()[-LOG_TAIL_LINES:])


def log_end(path: Path, most_bytes: int = OUTPUT_BYTES) -> str:
    """The end of a process's log, from the start of a line where it is cut; "" where there is no log."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        cut = max(0, path.stat().st_size - most_bytes)
        file.seek(cut)
        content = file.read()
    return (content.partition(b"\n")[2] if cut else content).decode("utf-8", errors="replace")
