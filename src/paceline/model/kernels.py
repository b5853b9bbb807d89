"""Compiled loops of the predictor. Where Numba is not installed, the same loops run as plain Python; nothing differs
but the speed.
"""

from __future__ import annotations

import numpy as np

from paceline.model.step import Floats

try:
    from numba import njit
except ImportError:  # an extra: pip install 'paceline[fast]'

    def njit(**_options: object):  # type: ignore[no-untyped-def]
        return lambda function: function


@njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator]
def sweep(
    ready_s: Floats, sizes: Floats, fixed_s: float, backward_s: float, feeding_s: float, prefetch: bool,
    latency_s: Floats, per_byte_s: Floats, compute: Floats,
) -> Floats:  # fmt: skip
    """See `recurrence.sweep`."""
    found = np.empty(len(compute))
    for k in range(len(compute)):
        scale, latency, per_byte, end = compute[k], latency_s[k], per_byte_s[k], 0.0
        for i in range(len(sizes)):
            end = max(end, ready_s[i] * scale) + latency + per_byte * sizes[i]
        busy = fixed_s * scale + max(backward_s * scale, end)
        found[k] = max(busy, feeding_s) if prefetch else busy + feeding_s
    return found
