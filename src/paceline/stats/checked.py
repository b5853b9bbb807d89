"""Numbers that statistics can be made of: finite, enough of them, positive where logs are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

RELATIVE_ROUNDING = 1e-12
"""Standard errors below this are rounding, not evidence; it keeps tests of identical values finite."""


def checked(values: Sequence[float], *, positive: bool = False, at_least: int = 1) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < at_least:
        raise ValueError(f"need a flat list of at least {at_least} value(s), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("every value must be finite: a failed run has no mean, leave it out")
    if positive and not (array > 0).all():
        raise ValueError("every value must be positive; for zero or negative values use plain_interval")
    return array
