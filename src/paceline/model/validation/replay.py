"""Replay of measured layer traces with wait-free back-propagation. This is no prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from paceline.errors import SpecError
from paceline.model.equations.arrays import Floats
from paceline.model.equations.recurrence import last_end
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
        """Step time if everything except the backward pass takes `before_s`."""
        return before_s + max(self.backward_total_s, float(last_end(np.cumsum(self.backward_s), self.comm_s)))


def layer_traces(rows: Sequence[Row]) -> list[LayerTrace]:
    """The last block of each trace that is complete and has a number of nodes."""
    blocks: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (row["trace"], row["nodes"], row.get("iteration_block", ""))
        blocks.setdefault(key, []).append(row)
    traces: dict[tuple[str, int], LayerTrace] = {}
    for (name, nodes, _), block in blocks.items():
        # A tensor that is sent with another has zero time; a block with only zeros was not measured.
        if nodes.isdigit() and all(_measured(block, column) for column in ("backward_compute_us", "comm_us")):
            traces[name, int(nodes)] = _trace(name, int(nodes), block)
    return list(traces.values())


def _measured(rows: Sequence[Row], column: str) -> bool:
    values = [number(row[column]) for row in rows]
    return None not in values and any(values)


def _trace(name: str, nodes: int, rows: Sequence[Row]) -> LayerTrace:
    # Tensors are numbered from input to output; gradients become ready in the opposite order.
    ordered = sorted(rows, key=lambda row: -int(row["tensor_id"]))
    backward = np.array([float(row["backward_compute_us"]) for row in ordered])
    # Weight and bias of a layer each have the time of the whole layer, which is counted once.
    again = np.concatenate([[False], backward[1:] == backward[:-1]])
    comm = np.array([float(row["comm_us"]) for row in ordered])
    return LayerTrace(name=name, nodes=nodes, backward_s=np.where(again, 0.0, backward) * US, comm_s=comm * US)


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """Replayed and measured speed-up for a number of nodes."""

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
    """Compare replayed speed-ups with measured throughputs (nodes → samples per second over all nodes).

    Everything in a single-node step except the backward pass is assumed to precede it.

    Raises:
        SpecError: The throughput of one node is missing.
    """
    if 1 not in throughput:
        raise SpecError("the table has no throughput for one node to compare with")
    alone_s = batch / throughput[1]
    replayed = []
    for trace in traces:
        if trace.nodes in throughput:
            step = trace.step_s(alone_s - trace.backward_total_s)
            speedup = trace.nodes * alone_s / step
            measured = throughput[trace.nodes] / throughput[1]
            replayed.append(Replayed(trace=trace.name, nodes=trace.nodes, replayed=speedup, measured=measured))
    return sorted(replayed, key=lambda result: (result.nodes, result.trace))
