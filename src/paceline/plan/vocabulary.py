"""The closed vocabularies of a trial and of what frameworks can do. As JSON has them: plain words."""

from __future__ import annotations

from typing import Final, Literal

StrategyClass = Literal["exact", "approximate", "asynchronous"]
"""What a strategy promises; classes are never ranked in one list."""
BatchScaling = Literal["weak", "strong"]
"""weak: the batch per worker was asked for; strong: the global batch."""
InputKind = Literal["resident", "pipeline"]
"""Samples that stay in memory, or a real input pipeline."""
WorkloadKind = Literal["graph", "program", "collective"]
Device = Literal["cpu", "cuda"]
PhasesBy = Literal["timers", "differences", "operators", "law"]
"""Where phases come from: clocks, differences of separate executables, operators of a profile, or a law."""

Exchange = Literal["ring", "server", "tree", "halving-doubling"]
"""How gradients are exchanged, as the performance model knows it."""
RING: Final = "ring"
SERVER: Final = "server"
TREE: Final = "tree"
HALVING: Final = "halving-doubling"

Sharing = Literal["replicated", "partitioned", "sharded", "pipelined", "asynchronous"]
"""How workers share a step, as the performance model knows it; `model.equations.strategies` says what each is."""
REPLICATED: Final = "replicated"
PARTITIONED: Final = "partitioned"
SHARDED: Final = "sharded"
PIPELINED: Final = "pipelined"
ASYNCHRONOUS: Final = "asynchronous"
"""Also a class of strategies: workers do not wait for each other."""
EXACT: Final = "exact"
APPROXIMATE: Final = "approximate"
