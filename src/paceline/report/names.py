"""What rows are called: their labels in a table, or numbers with a legend where labels would leave no room; in an
answer, frameworks by the names that people say.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.compare import Comparison, Row

LONGEST_SHARE = 0.45
"""Of the width: longer names would be wrapped over many lines."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Names of the rows."""

    of: Mapping[str, str]
    """Row key → name."""
    legend: str
    """What the numbers stand for; "" where names speak for themselves."""


def spoken_framework(row: Row, comparison: Comparison, part: str) -> str:
    """A part of the row's label; its framework as people say it, with the strategy only where there are several."""
    if part != f"{row.framework} {row.strategy}":
        return part
    name = SPOKEN.get(row.framework, row.framework)
    strategies = {other.strategy for other in comparison.rows if other.framework == row.framework}
    return name if len(strategies) == 1 else f"{name} {row.strategy}"


def name_rows(comparison: Comparison, width: int) -> Names:
    """Labels where all are short enough, else "[1]", "[2]" … and a legend."""
    labels = {row.key: row.label for row in comparison.rows}
    if all(len(label) <= width * LONGEST_SHARE for label in labels.values()):
        return Names(of=labels, legend="")
    numbered = {key: f"[{number}]" for number, key in enumerate(labels, start=1)}
    indent = max(map(len, numbered.values())) + 1
    lines = [
        textwrap.fill(
            labels[key],
            width,
            initial_indent=number.ljust(indent),
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for key, number in numbered.items()
    ]
    return Names(of=numbered, legend="\n".join(lines))
