"""Compiled loops of the predictor. Needs Numba, an extra: pip install 'paceline[sweeps]'. Their twins in NumPy stand in
`recurrence`, which takes them where this module cannot be imported.
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
    found = np.empty(len(compute))
    for k in range(len(compute)):
        scale, latency, per_byte, end = compute[k], latency_s[k], per_byte_s[k], 0.0
        for i in range(len(sizes)):
            end = max(end, ready_s[i] * scale) + latency + per_byte * sizes[i]
        busy = fixed_s * scale + max(backward_s * scale, end)
        found[k] = max(busy, feeding_s) if prefetch else busy + feeding_s
    return found


sweep: Callable[..., Floats] = njit(cache=True, nogil=True)(_sweep)
"""See `recurrence.sweep`."""
