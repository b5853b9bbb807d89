"""The closed vocabularies of trials and of capabilities, as the plain words that JSON has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeVar

Word = TypeVar("Word", bound=str)

StrategyClass = Literal["exact", "approximate", "asynchronous"]
"""Whether a strategy computes exactly the workload; strategies of different classes are never ranked in one list."""
BatchScaling = Literal["weak", "strong"]
"""weak: the study gives the batch per worker; strong: the global batch."""
InputKind = Literal["resident", "pipeline"]
"""Samples that stay in memory, or a real input pipeline."""
INPUT_KINDS: Final[tuple[InputKind, ...]] = ("resident", "pipeline")
WorkloadKind = Literal["graph", "program", "collective"]
Device = Literal["cpu", "cuda"]
DEVICES: Final[tuple[Device, ...]] = ("cpu", "cuda")
PhasesBy = Literal["timers", "differences", "operators", "law"]
"""How phases are measured: by clocks, by differences of separate programs, by operators of a profile, or by a law."""

Exchange = Literal["ring", "server", "tree", "halving-doubling"]
"""How gradients are exchanged, as the performance model distinguishes it."""
RING: Final = "ring"
SERVER: Final = "server"
TREE: Final = "tree"
HALVING: Final = "halving-doubling"

Sharing = Literal["replicated", "partitioned", "sharded", "pipelined", "asynchronous"]
"""How workers share a step, as the performance model distinguishes it; defined in `model.equations.strategies`."""
REPLICATED: Final = "replicated"
PARTITIONED: Final = "partitioned"
SHARDED: Final = "sharded"
PIPELINED: Final = "pipelined"
ASYNCHRONOUS: Final = "asynchronous"
"""Workers do not wait for each other. This is also a class of strategies."""
EXACT: Final = "exact"
APPROXIMATE: Final = "approximate"


def words_of(values: Iterable[str], vocabulary: tuple[Word, ...]) -> list[Word]:
    """The same words in the same order, with the type of the vocabulary that they were checked against."""
    return [word for value in values for word in vocabulary if word == value]
