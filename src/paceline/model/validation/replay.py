"""A measured layer trace replayed: what wait-free back-propagation makes of these times and messages. No prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from paceline.errors import SpecError
from paceline.model.equations.recurrence import last_end
from paceline.model.equations.step import Floats
from paceline.model.foreign.tables import Row, number

US = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTrace:
    """One step of one worker, in the order of the backward pass."""

    name: str
    nodes: int
    backward_s: Floats
    comm_s: Floats

    @property
    def backward_total_s(self) -> float:
        return float(self.backward_s.sum())

    def step_s(self, before_s: float) -> float:
        """A step whose forward pass, update and all else but the backward pass take so long."""
        return before_s + max(self.backward_total_s, last_end(np.cumsum(self.backward_s), self.comm_s))


def layer_traces(rows: Sequence[Row]) -> list[LayerTrace]:
    """All traces of a table that are complete and say how many nodes there were; the last block of each."""
    blocks: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (row["trace"], row["nodes"], row.get("iteration_block", ""))
        blocks.setdefault(key, []).append(row)
    found: dict[tuple[str, int], LayerTrace] = {}
    for (name, nodes, _), mine in blocks.items():
        # A tensor may travel with another one and take no time; a block without any time was never measured.
        if nodes.isdigit() and all(_told(mine, column) for column in ("backward_compute_us", "comm_us")):
            found[name, int(nodes)] = _trace(name, int(nodes), mine)
    return list(found.values())


def _told(rows: Sequence[Row], column: str) -> bool:
    values = [number(row[column]) for row in rows]
    return None not in values and any(values)


def _trace(name: str, nodes: int, rows: Sequence[Row]) -> LayerTrace:
    # Tensors are numbered from input to output; gradients come the other way.
    ordered = sorted(rows, key=lambda row: -int(row["tensor_id"]))
    backward = np.array([float(row["backward_compute_us"]) for row in ordered])
    # Weight and bias of a layer each carry the whole layer's time: it is spent once, before the first of them.
    again = np.concatenate([[False], backward[1:] == backward[:-1]])
    comm = np.array([float(row["comm_us"]) for row in ordered])
    return LayerTrace(name=name, nodes=nodes, backward_s=np.where(again, 0.0, backward) * US, comm_s=comm * US)


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """Speed-up of so many nodes: as replayed and as measured."""

    trace: str
    nodes: int
    replayed: float
    measured: float

    @property
    def error(self) -> float:
        return self.replayed / self.measured - 1

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "error": self.error}


def replay(traces: Sequence[LayerTrace], throughput: dict[int, float], *, batch: float) -> list[Replayed]:
    """Speed-ups of all traces against measured throughputs (nodes → samples a second, all together).

    All of a step on one node that is not the trace's backward pass is taken to come before it.

    Raises:
        SpecError: the throughput of one node is missing.
    """
    if 1 not in throughput:
        raise SpecError("no throughput of one node: nothing to compare with")
    alone_s = batch / throughput[1]
    found = []
    for trace in traces:
        if trace.nodes in throughput:
            step = trace.step_s(alone_s - trace.backward_total_s)
            speedup = trace.nodes * alone_s / step
            measured = throughput[trace.nodes] / throughput[1]
            found.append(Replayed(trace=trace.name, nodes=trace.nodes, replayed=speedup, measured=measured))
    return sorted(found, key=lambda one: (one.nodes, one.trace))
