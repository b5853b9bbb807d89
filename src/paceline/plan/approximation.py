"""How a strategy gives up exactness, and how far its gradient may then be from the true one.

Frameworks declare it as data (`Capabilities.approximations`); the fairness proof holds them to it. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FACTOR = 5.0
"""How much further from the reference than its own rounding a framework may be, in float32 and in coarser formats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Approximation:
    """One way in which exactness is given up. Bounds of several add up."""

    reason: str
    """In words: "computes in bfloat16"."""
    because: str
    """Why the gradient stays within the bounds, or why there are none."""
    computes_in: str | None = None
    """A format of fewer bits than float32. The gradient may be FACTOR times as far away as the reference's own when
    every layer rounds to that format: how far that is depends on the workload."""
    gradient: float | None = 0.0
    """How far the gradient of step 0, after its exchange, may be from the true one beyond that, relative to its norm.
    0: the first step is exact. None: not bounded."""
    exchange: float | None = None
    """Most of what is to be exchanged (the gradient and what is left over from before) that an exchange may lose.
    None: the framework does not report it."""
    beyond: str | None = None
    """What else differs from an exact strategy and is not bounded."""


BF16 = Approximation(
    reason="computes in bfloat16",
    because="bf16 keeps 8 bits of a number; the reference tells what that does to the gradient of this workload",
    computes_in="bf16",
)
"""What layers give is rounded to bfloat16, as every framework's mixed precision does."""

BF16_SUMS = replace(
    BF16,
    because=f"{BF16.because}; sums over samples, as for the gradient of a bias, are kept in bf16 too, and a sum of 32 "
    "equal terms may then be off by 2^-4",
    gradient=2.0**-4,
)
"""As `BF16`, where sums are not kept in float32: each of n additions rounds by up to 2^-8 of the sum so far, on average
half of the whole, and equal terms all round to the same side."""

FP16_EXCHANGE = Approximation(
    reason="gradients are exchanged in fp16",
    because="fp16 keeps 11 bits of a number, so one rounding changes it by at most 2^-11 of itself; five times that",
    gradient=FACTOR * 2.0**-11,
    exchange=FACTOR * 2.0**-11,
)
"""Gradients are rounded before they are exchanged, and again when they are summed."""
