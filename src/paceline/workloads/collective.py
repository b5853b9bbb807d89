"""A collective operation by itself as a workload: which one, and with messages of which sizes.

Sizes and bandwidths are defined as in nccl-tests: the size of an all-gather is the size of the buffer that every rank
holds at the end, the size of a reduce-scatter is the size of the buffer that every rank holds at the start. Elements
are float32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from paceline.errors import SpecError, did_you_mean
from paceline.units import BYTES, parse_quantity
from paceline.workloads.graph import HASH_DIGITS
from paceline.workloads.options import checked_options

MODEL = "collective"
"""The word that a study gives in place of a model."""
HASH_PREFIX = "collective:"
"""Distinguishes the hash of a collective from the hash of a graph."""
ELEMENT_BYTES = 4
"""Bytes of a float32."""
FACTOR = 4
"""The factor from one size of a range to the next."""
MOST_SIZES = 64
"""The largest number of sizes: one run covers all of them and keeps buffers for each."""

BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda _ranks: 1.0,
    "push_pull": lambda _ranks: 1.0,
    "send_recv": lambda _ranks: 1.0,
}
"""Operation → bus bandwidth divided by algorithm bandwidth, as in nccl-tests, which has no push_pull."""
DEALT_OUT = frozenset({"all_gather", "reduce_scatter"})
"""Operations in which every rank has an equal share of the message."""
PAIRWISE = frozenset({"send_recv"})
"""Operations between two ranks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Collective:
    """One operation with messages of several sizes."""

    kind: ClassVar[Literal["collective"]] = "collective"
    layer_kinds: ClassVar[frozenset[str]] = frozenset()
    operation: str
    """A key of BUS_FACTORS."""
    sizes: tuple[int, ...]
    """Bytes of the messages, smallest first."""

    @property
    def hash(self) -> str:
        content = f"{self.operation}|{','.join(map(str, self.sizes))}|float32"
        return HASH_PREFIX + hashlib.sha256(content.encode()).hexdigest()[:HASH_DIGITS]

    def sizes_among(self, ranks: int) -> tuple[int, ...]:
        """Bytes that are moved: where ranks hold shares, each size is rounded down to equal shares."""
        if self.operation not in DEALT_OUT:
            return self.sizes
        whole = ELEMENT_BYTES * ranks
        return tuple(size // whole * whole for size in self.sizes)

    def refusal(self, workers: int) -> str | None:
        """Why this number of workers cannot do the operation, in words, or None."""
        if workers < 2:
            return f"{self.operation} needs at least 2 workers"
        if self.operation in PAIRWISE and workers != 2:
            return f"{self.operation} is between 2 workers, not {workers}"
        if 0 in self.sizes_among(workers):
            return f"{self.sizes[0]} bytes are too few to deal out to {workers} workers"
        return None


def load_collective(options: Mapping[str, object]) -> Collective:
    """The collective that [workload.collective] describes.

    Raises:
        SpecError: an unknown option or operation, or sizes that cannot be read.
    """
    build: Callable[..., Collective] = _collective
    return build(**checked_options(build, options, owner="workload 'collective'", word="option"))


def _collective(*, operation: str = "all_reduce", sizes: str = "1KiB..64MiB") -> Collective:
    if operation not in BUS_FACTORS:
        raise SpecError(f"unknown operation '{operation}'", hint=did_you_mean(operation, BUS_FACTORS))
    return Collective(operation=operation, sizes=parse_sizes(sizes))


def parse_sizes(text: str) -> tuple[int, ...]:
    """Sizes from a range ("1KiB..64MiB": each four times the one before) or a list ("4KiB,1MiB").

    Raises:
        SpecError: not a size, one that is no multiple of a float32, or an empty range.
    """
    first, dots, last = text.partition("..")
    sizes = tuple(_range(_size(first), _size(last))) if dots else tuple(map(_size, text.split(",")))
    if not sizes:
        raise SpecError(f"sizes '{text}' end before they begin", hint="write the smaller size first: 1KiB..64MiB")
    if len(sizes) > MOST_SIZES:
        raise SpecError(f"sizes '{text}' are {len(sizes)}, more than {MOST_SIZES}", hint="name fewer sizes")
    return tuple(sorted(set(sizes)))


def _range(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= FACTOR


def _size(text: str) -> int:
    hint = "write it like 4KiB,1MiB or 1KiB..64MiB"
    try:
        size = parse_quantity(text, BYTES)
    except ValueError as error:
        raise SpecError(f"sizes: {error}", hint=hint) from None
    if size < ELEMENT_BYTES or size % ELEMENT_BYTES:
        raise SpecError(f"sizes: {text.strip()} is no whole number of float32 (4 bytes each)", hint=hint)
    return int(size)
