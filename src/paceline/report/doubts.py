"""What failed, what is doubtful and what was kept apart, in sentences, of whatever was measured."""

from __future__ import annotations

from paceline.compare import Collectives, Comparison
from paceline.report.collectives import collective_failures, collective_warnings
from paceline.report.sentences import failure_sentences, note_sentences, unscaled_sentences, warning_sentences


def doubts(results: Comparison | Collectives) -> tuple[list[str], list[str], list[str]]:
    """(failures, warnings, notes)."""
    if isinstance(results, Collectives):
        return collective_failures(results), collective_warnings(results.tables), note_sentences(results.notes)
    labels = {row.key: row.label for row in results.rows}
    noted = [*note_sentences(results.notes), *unscaled_sentences(results)]
    return failure_sentences(results, labels), warning_sentences(results, labels), noted
