"""How a number is known, in one word."""

from __future__ import annotations

from typing import Final, Literal

KnownBy = Literal["measured", "derived", "modelled", "guessed", "simulated"]
"""measured: by clocks; derived: from other measured numbers; modelled: by a calibrated model; guessed: from data
sheets; simulated: by an event simulation, or drawn from a law."""
MEASURED: Final = "measured"
DERIVED: Final = "derived"
MODELLED: Final = "modelled"
GUESSED: Final = "guessed"
SIMULATED: Final = "simulated"


def weakest(*sources: KnownBy) -> KnownBy:
    """How a number is known that follows from several measured ones: simulated before derived before measured."""
    if SIMULATED in sources:
        return SIMULATED
    return DERIVED if DERIVED in sources else MEASURED
