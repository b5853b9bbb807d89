"""What failed, what is doubtful and what was kept apart, in sentences, of whatever was measured."""

from __future__ import annotations

from paceline.compare import Collectives, Comparison
from paceline.report.collectives import collective_failures, collective_warnings
from paceline.report.sentences import failure_sentences, note_sentences, unscaled_sentences, warning_sentences


def doubts(found: Comparison | Collectives) -> tuple[list[str], list[str], list[str]]:
    """(failures, warnings, notes)."""
    if isinstance(found, Collectives):
        return collective_failures(found), collective_warnings(found.tables), note_sentences(found.notes)
    labels = {row.key: row.label for row in found.rows}
    noted = [*note_sentences(found.notes), *unscaled_sentences(found)]
    return failure_sentences(found, labels), warning_sentences(found, labels), noted
