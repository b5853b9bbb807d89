"""Compiled loops of the predictor. They need Numba, an extra: pip install 'paceline[sweeps]'.

`recurrence` has the same loops in NumPy and uses them if this module cannot be imported.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from paceline.model.equations.step import Floats


def _sweep(
    ready_s: Floats,
    sizes: Floats,
    fixed_s: float,
    backward_s: float,
    feeding_s: float,
    prefetch: bool,
    latency_s: Floats,
    per_byte_s: Floats,
    compute: Floats,
) -> Floats:
    steps_s = np.empty(len(compute))
    for k in range(len(compute)):
        scale, latency, per_byte, end = compute[k], latency_s[k], per_byte_s[k], 0.0
        for i in range(len(sizes)):
            end = max(end, ready_s[i] * scale) + latency + per_byte * sizes[i]
        busy = fixed_s * scale + max(backward_s * scale, end)
        steps_s[k] = max(busy, feeding_s) if prefetch else busy + feeding_s
    return steps_s


sweep: Callable[..., Floats] = njit(cache=True, nogil=True)(_sweep)
"""See `recurrence.sweep`."""
