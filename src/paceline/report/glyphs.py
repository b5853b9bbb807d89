"""Signs for terminals that know them, and one-for-one stand-ins for the others, so columns stay aligned."""

from __future__ import annotations

PHASES = "█▓▒░▚▞╳"
"""Fillings that differ without colour, in the order in which phases get them."""
REST = "·"
"""What no phase accounts for."""
MEASURED, UNSURE, IDEAL = "█", "▒", "│"
"""The glyphs of the scaling chart."""

_PLAIN = str.maketrans("█▓▒░▚▞╳·│×–−µ…±≤≥→─≈", "#=-:%/X.|x--u.~<>>-~")


def for_encoding(text: str, encoding: str | None) -> str:
    """The text as it is where the encoding can carry it, else in ASCII with the same width."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")
    return text
