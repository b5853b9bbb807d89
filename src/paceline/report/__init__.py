"""Showing results. Receives finished numbers and returns text; computes nothing and reads no store."""

from paceline.report.answer import answer
from paceline.report.collectives import collectives_text
from paceline.report.glyphs import for_encoding
from paceline.report.text import comparison_table, fairness_report, report, results_answer, results_text

__all__ = [
    "answer",
    "collectives_text",
    "comparison_table",
    "fairness_report",
    "for_encoding",
    "report",
    "results_answer",
    "results_text",
]
