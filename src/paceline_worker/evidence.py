"""What a rank shows in a fairness proof: its gradients and weights, each tensor as its norm and a short sketch.

A sketch is the tensor's products with a few fixed vectors of +1 and -1, the same for every framework, host and Python.
Two tensors that differ have sketches that differ, and the mean square of that difference is, on average, the square
of their distance: eight numbers tell how far two gradients of sixty million numbers are apart, without either being
sent anywhere.
"""

import zlib

import numpy as np

SKETCH = 8
"""Numbers a tensor. The distance of two is then known to a quarter, and agreement is asked for to a factor of five."""
CHUNK = 1 << 20


def write(events, what, pairs):
    """Say what some tensors are.

    Args:
        what: "gradients" (of step 0, as the optimizer sees them), "weights" or "statistics" (after the last step).
        pairs: ("layer.tensor", array) in the graph's names, shapes and layout, for all that this rank holds.
    """
    events.write("evidence", what=what, tensors=described(pairs))


def described(pairs):
    """Tensor → norm and sketch."""
    return {name: describe(name, array) for name, array in pairs}


def soon_enough(steps, start, period):
    """(start, period) of what begins with step `start` and has a turn every `period` steps, made short enough for a
    proof of so many steps: half of them are left to it, and it has two turns at least."""
    start = min(start, steps // 2)
    return start, max(1, min(period, (steps - start) // 2))


def describe(name, array):
    """Norm and sketch of one tensor."""
    flat = np.ascontiguousarray(array).reshape(-1)
    # The legacy generator: its stream is the same in every version of NumPy, by promise.
    signs = np.random.RandomState(zlib.crc32(name.encode("utf-8")))
    square = 0.0
    sketch = np.zeros(SKETCH)
    for first in range(0, flat.size, CHUNK):
        part = flat[first : first + CHUNK].astype(np.float64)
        square += float(part.dot(part))
        drawn = np.frombuffer(signs.bytes(part.size), dtype=np.uint8)
        for k in range(SKETCH):
            positive = ((drawn >> k) & 1).astype(np.float64)
            # Σ ±x = 2 Σ₊ x - Σ x
            sketch[k] += 2.0 * float(positive.dot(part)) - float(part.sum())
    return {"norm": square**0.5, "sketch": sketch.tolist()}
