"""When gradients become ready during the backward pass: measured per layer, or from the graph's arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paceline.workloads.cost import cost
from paceline.workloads.graph import Graph

if TYPE_CHECKING:  # a prediction needs no records, and they are slow to load
    from paceline.record.record import Record

FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""Bucket sizes that PyTorch uses by default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Buckets:
    """Bucket sizes. Gradients fill a bucket in the order in which they become ready, as in PyTorch's DDP.

    A cap of 0 sends each gradient as its own message: wait-free back-propagation (Zhang et al. 2017, Poseidon). An
    infinite cap sends everything at the end of the backward pass, without overlap.
    """

    first_bytes: float = FIRST_BUCKET_BYTES
    cap_bytes: float = BUCKET_BYTES

    def sizes_of(self, total: float) -> tuple[float, ...]:
        """Sizes of the messages that carry this many bytes, if gradients are small compared with a bucket."""
        sizes: list[float] = []
        while total > 0:
            sizes.append(min(total, self.cap_bytes if sizes else self.first_bytes))
            total -= sizes[-1]
        return tuple(sizes)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """All gradients in the order in which they become ready."""

    fractions: tuple[float, ...]
    """Fraction of the backward pass after which each gradient is ready."""
    bytes: tuple[float, ...]
    measured: bool
    """Whether layers were timed; otherwise their times are proportional to their arithmetic."""

    def of_messages(self, sizes: Sequence[float]) -> tuple[float, ...]:
        """Fraction of the backward pass after which each message of these sizes is ready."""
        filled = np.cumsum(self.bytes)
        total = float(filled[-1])
        # Reported sizes may include padding, so use the fraction of all gradients.
        wanted = np.cumsum(sizes) / float(np.sum(sizes)) * total
        index = np.minimum(np.searchsorted(filled, wanted * (1 - 1e-9)), len(filled) - 1)
        return tuple(float(self.fractions[i]) for i in index)

    def bucketed(self, buckets: Buckets) -> tuple[float, ...]:
        """Sizes of the messages that buckets make of these gradients."""
        sizes: list[float] = []
        held, cap = 0.0, buckets.first_bytes
        for size in self.bytes:
            held += size
            if held >= cap:
                sizes.append(held)
                held, cap = 0.0, buckets.cap_bytes
        return tuple([*sizes, held] if held else sizes)


def buckets_of(bucket_bytes: float | None) -> Buckets:
    """Buckets as in PyTorch: a given size also holds for the first bucket."""
    if bucket_bytes is None:
        return Buckets()
    return Buckets(first_bytes=bucket_bytes, cap_bytes=bucket_bytes)


def ready_of(records: Sequence[Record], graph: Graph) -> Ready:
    """When gradients become ready, from records with layer times if there are any."""
    sizes = {layer.layer: float(layer.gradient_bytes) for layer in cost(graph).layers if layer.gradient_bytes}
    timed = [times for record in records if (times := _measured(record, sizes))]
    if timed:
        names = set.intersection(*(set(times) for times in timed))
        mean = {name: float(np.mean([times[name] for times in timed])) for name in names}
        if set(mean) == set(sizes):
            return _in_order(mean, sizes, measured=True)
    return _in_order(_by_arithmetic(graph), sizes, measured=False)


def _measured(record: Record, sizes: Mapping[str, float]) -> dict[str, float]:
    """Maps a layer to the fraction of the backward pass after which its gradient is ready."""
    if record.layers is None or not record.ok:
        return {}
    frame = record.layers.to_pandas()
    ready = frame[frame["what"] == "gradient_ready"].groupby("layer")["seconds"].mean()
    if ready.empty or ready.max() <= 0:
        return {}
    return {str(name): float(value / ready.max()) for name, value in ready.items() if name in sizes}


def _by_arithmetic(graph: Graph) -> dict[str, float]:
    layers = cost(graph).layers
    work = np.array([float(layer.backward_flops) for layer in layers][::-1])
    done = np.cumsum(work) / max(1.0, float(work.sum()))
    return {layer.layer: float(part) for layer, part in zip(layers[::-1], done, strict=True)}


def _in_order(fractions: Mapping[str, float], sizes: Mapping[str, float], *, measured: bool) -> Ready:
    names = sorted(sizes, key=lambda name: fractions[name])
    return Ready(
        fractions=tuple(fractions[name] for name in names),
        bytes=tuple(sizes[name] for name in names),
        measured=measured,
    )
