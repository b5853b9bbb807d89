"""Records of runs: what was run and measured, what is doubtful about it, and where it is stored.

The stages before this one act; the stages after it only compute from stored records.
"""

from paceline.record.attempt import last_attempts
from paceline.record.checks import check
from paceline.record.export import runs_table, samples_table, to_csv, to_json, write_parquet
from paceline.record.record import MEASUREMENT, PROOF, SCHEMA_VERSION, Doubt, Outcome, OutcomeKind, Rank, Record
from paceline.record.store import Store
from paceline.record.summary import RunSummary, summarize

__all__ = [
    "MEASUREMENT",
    "PROOF",
    "SCHEMA_VERSION",
    "Doubt",
    "Outcome",
    "OutcomeKind",
    "Rank",
    "Record",
    "RunSummary",
    "Store",
    "check",
    "last_attempts",
    "runs_table",
    "samples_table",
    "summarize",
    "to_csv",
    "to_json",
    "write_parquet",
]
