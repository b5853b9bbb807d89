"""What rows are called in an answer: frameworks by the names that people say, and rows by what sets them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
UNLIMITED = "unlimited"
"""Label of a network that nothing slows."""
MOST_NAMES = 3
"""The most names of a list in an answer; further ones are counted."""


def spoken_framework(row: Row, comparison: Comparison, part: str) -> str:
    """A part of the row's label; its framework as people say it, with the strategy only where there are several."""
    if part != f"{row.framework} {row.strategy}":
        return part
    name = SPOKEN.get(row.framework, row.framework)
    strategies = {other.strategy for other in comparison.rows if other.framework == row.framework}
    return name if len(strategies) == 1 else f"{name} {row.strategy}"


def parts_of(row: Row, comparison: Comparison) -> list[str]:
    """The parts of the row's label, its framework as people say it."""
    return [spoken_framework(row, comparison, part) for part in row.label.split(" · ")]


def told_apart(comparison: Comparison, rows: Sequence[Row]) -> tuple[Mapping[str, str], str]:
    """Row key → what sets it apart from the other rows here, and in a phrase what they all share."""
    parts = {row.key: parts_of(row, comparison) for row in rows}
    shared = [part for part in parts[rows[0].key] if all(part in other for other in parts.values())]
    names = {key: ", ".join(part for part in own if part not in shared) or ", ".join(own) for key, own in parts.items()}
    return names, phrase(shared, rows[0])


def phrase(parts: Sequence[str], row: Row) -> str:
    """Parts of a row's label as a phrase: "2 workers on 2 hosts over 1GbE"."""
    text = ", ".join(part for part in parts if part != row.network)
    links = "unlimited links" if row.network == UNLIMITED else row.network
    return " ".join(words for words in (text, f"over {links}" if row.network in parts else "") if words)


def where(words: str) -> str:
    """Where something holds: "with 2 workers", "over 1GbE"; "" everywhere."""
    return words if not words or words.startswith("over ") else f"with {words}"


def setting(words: str) -> str:
    """Where something holds, as the beginning of a sentence: "With 2 workers, "; "" everywhere."""
    return capital(f"{where(words)}, ") if words else ""


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(names: Sequence[str]) -> str:
    """E.g. "a, b and c"; of many the first few, and how many more."""
    if len(names) > MOST_NAMES + 1:
        names = [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
