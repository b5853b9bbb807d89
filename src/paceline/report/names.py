"""What rows are called in a text: their labels, or numbers with a legend where labels would leave no room."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.compare import Comparison

LONGEST_SHARE = 0.35
"""Of the width: a longer name would push every number into a block of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Names of the rows."""

    of: Mapping[str, str]
    """Row key → name."""
    legend: str
    """What the numbers stand for; "" where names speak for themselves."""


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
