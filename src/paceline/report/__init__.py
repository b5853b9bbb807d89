"""Showing results. Receives finished numbers and returns text; computes nothing and reads no store."""

from paceline.report.answer import answer
from paceline.report.glyphs import for_encoding
from paceline.report.text import comparison_table, fairness_report, report

__all__ = ["answer", "comparison_table", "fairness_report", "for_encoding", "report"]
