"""Verdicts, efficiency and precision from records. Pure: never runs anything, imports no plug-in family."""

from paceline.compare.comparison import Comparison, Note, compare
from paceline.compare.precision import more_repeats
from paceline.compare.quantity import Quantity
from paceline.compare.rows import Phase, Row, RowWarning
from paceline.compare.verdicts import DIFFERENT_MACHINES, NO_PROOF, PairVerdict, Proof

__all__ = [
    "DIFFERENT_MACHINES",
    "NO_PROOF",
    "Comparison",
    "Note",
    "PairVerdict",
    "Phase",
    "Proof",
    "Quantity",
    "Row",
    "RowWarning",
    "compare",
    "more_repeats",
]
