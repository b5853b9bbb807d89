"""The series of a record from the events of its ranks: raw samples of steps, and layer times, as tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paceline.run.events import COLUMNS, SOMETIMES, RankEvents, StepBlock


def samples_table(ranks: Sequence[RankEvents]) -> pa.Table | None:
    """Raw samples of all ranks, one row per rank and step; None where no step was reported."""
    blocks = [block for events in ranks for block in events.blocks]
    phases = list(dict.fromkeys(name for block in blocks for name in block.phases))
    present = [name for name in SOMETIMES if any(_has_numbers(block, name) for block in blocks)]
    columns: dict[str, list[object]] = {name: [] for name in ("rank", "step", "kind", *COLUMNS, *present)}
    columns |= {f"phase.{name}": [] for name in phases}
    for events in ranks:
        own_phases = {name for block in events.blocks for name in block.phases}
        for block in events.blocks:
            columns["rank"] += [events.rank] * block.count
            columns["step"] += range(block.first, block.first + block.count)
            columns["kind"] += [block.kind] * block.count
            for name in (*COLUMNS, *present):
                columns[name] += block.columns.get(name, [None] * block.count)
            for name in phases:
                # A rank that reports the phase in other blocks spent no time on it in this one.
                absent = [0.0 if name in own_phases else None] * block.count
                columns[f"phase.{name}"] += block.phases.get(name, absent)
    return _table(columns)


def _has_numbers(block: StepBlock, name: str) -> bool:
    return any(value is not None for value in block.columns.get(name, ()))


def layers_table(ranks: Sequence[RankEvents]) -> pa.Table | None:
    """Layer times of all ranks, one row per rank, layer, quantity and step; None where none were reported."""
    columns: dict[str, list[object]] = {name: [] for name in ("rank", "layer", "what", "step", "seconds")}
    for events in ranks:
        for block in events.layers:
            for what, seconds_of_layer in block.seconds.items():
                for layer, seconds in seconds_of_layer.items():
                    columns["rank"] += [events.rank] * len(seconds)
                    columns["layer"] += [layer] * len(seconds)
                    columns["what"] += [what] * len(seconds)
                    columns["step"] += range(block.first, block.first + len(seconds))
                    columns["seconds"] += seconds
    return _table(columns)


def _table(columns: Mapping[str, list[object]]) -> pa.Table | None:
    if not columns["rank"]:
        return None
    return pa.table({name: pa.array(values, type=_type(name)) for name, values in columns.items()})


def _type(column: str) -> pa.DataType:
    if column in {"rank", "step"}:
        return pa.int32()
    if column == "bytes":
        return pa.int64()
    return pa.string() if column in {"kind", "layer", "what"} else pa.float64()
