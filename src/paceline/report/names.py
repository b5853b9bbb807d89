"""What frameworks are called in an answer: by the names that people say."""

from __future__ import annotations

from paceline.compare import Comparison, Row

SPOKEN = {
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "mxnet": "MXNet",
    "keras-tensorflow": "Keras on TensorFlow",
    "keras-jax": "Keras on JAX",
    "keras-torch": "Keras on PyTorch",
}
"""Framework → its name as people say it."""


def spoken_framework(row: Row, comparison: Comparison, part: str) -> str:
    """A part of the row's label; its framework as people say it, with the strategy only where there are several."""
    if part != f"{row.framework} {row.strategy}":
        return part
    name = SPOKEN.get(row.framework, row.framework)
    strategies = {other.strategy for other in comparison.rows if other.framework == row.framework}
    return name if len(strategies) == 1 else f"{name} {row.strategy}"
