"""Verdicts, efficiency and precision from records. Pure: never runs anything, imports no plug-in family."""

from paceline.compare.collectives import Collectives, CollectiveTable, tables_of
from paceline.compare.comparison import Comparison, Note, compare
from paceline.compare.distances import Distance
from paceline.compare.fairness import AGREES, NO_PROOF, NOT_COMPARABLE, Fairness, Proof, prove
from paceline.compare.families import ScalingFamily, families
from paceline.compare.gaps import Factor
from paceline.compare.precision import more_repeats
from paceline.compare.proof_evidence import TRAITS
from paceline.compare.rows import Phase, Row, RowWarning
from paceline.compare.runs import gather
from paceline.compare.verdicts import DIFFERENT_MACHINES, PairVerdict

__all__ = [
    "AGREES",
    "DIFFERENT_MACHINES",
    "NOT_COMPARABLE",
    "NO_PROOF",
    "TRAITS",
    "CollectiveTable",
    "Collectives",
    "Comparison",
    "Distance",
    "Factor",
    "Fairness",
    "Note",
    "PairVerdict",
    "Phase",
    "Proof",
    "Row",
    "RowWarning",
    "ScalingFamily",
    "compare",
    "families",
    "gather",
    "more_repeats",
    "prove",
    "tables_of",
]
