"""What a page shows of a study that is too large to be read: the fastest of each question, whole families at a time.

A table of a thousand rows answers nothing, and its page is slow to open. The answer and the verdicts are those of all
rows; tables and figures show some, and a note says which. Everything else is in `compare --json` and `export`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paceline.compare import Comparison, Note, Row

MOST_ROWS = 200
"""The most rows of a page's tables and figures that a browser shows quickly and a reader scrolls through."""
MOST_PAIRS = 500
"""The most rows of the folded table of verdicts."""
MOST_IN_DETAIL = 12
"""The most rows that have a timeline and resource curves."""
MOST_EXPLAINED = 40
"""Rows of a study of which each is explained; of a larger one those in detail are."""


def shortened(comparison: Comparison, most: int = MOST_ROWS) -> Comparison:
    """The same comparison with no more rows than a page can show, and a note that says so."""
    if len(comparison.rows) <= most and len(comparison.verdicts) <= MOST_PAIRS:
        return comparison
    kept = _kept(comparison.rows, most)
    rows = tuple(row for row in comparison.rows if row.key in kept)
    pairs = [pair for pair in comparison.verdicts if pair.a in kept and pair.b in kept]
    message = (
        f"{len(rows)} of {len(comparison.rows)} rows are shown, the fastest settings of each workload and batch with "
        f"all their sizes, and {min(len(pairs), MOST_PAIRS)} of {len(comparison.verdicts)} pairs"
    )
    note = Note(code="shortened", message=message, hint="see them all: paceline compare STUDY --json")
    return replace(comparison, rows=rows, verdicts=tuple(pairs[:MOST_PAIRS]), notes=(*comparison.notes, note))


def in_detail(comparison: Comparison, most: int = MOST_IN_DETAIL) -> list[Row]:
    """Rows to look at closely: the largest size of each family; of too many families, those of the fastest settings."""
    largest: dict[str, Row] = {}
    for row in comparison.rows:
        name = row.base or row.key
        if row.throughput is not None and (name not in largest or row.workers > largest[name].workers):
            largest[name] = row
    return list(largest.values()) if len(largest) <= most else _of_fastest_settings(comparison, most)


def explained(comparison: Comparison) -> frozenset[str] | None:
    """Ids of the trials that a report explains; None: all."""
    if len(comparison.rows) <= MOST_EXPLAINED:
        return None
    return frozenset(row.trial for row in _of_fastest_settings(comparison, MOST_IN_DETAIL))


def _of_fastest_settings(comparison: Comparison, most: int) -> list[Row]:
    """The fastest row of each workload, then other rows with the same settings, fastest first.

    Rows of one setting share a model of the step, so that few are fitted for them.
    """
    rows = sorted((row for row in comparison.rows if row.throughput is not None), key=lambda row: -_speed(row))
    fastest: dict[str, Row] = {}
    for row in rows:
        fastest.setdefault(row.workload, row)
    chosen = list(fastest.values())[:most]
    keys, settings = {row.key for row in chosen}, [_setting(row) for row in chosen]
    others = [row for row in rows if row.key not in keys and _setting(row) in settings]
    return [*chosen, *others][:most]


def _kept(rows: Sequence[Row], most: int) -> set[str]:
    """Keys of whole families, dealt out over workloads and batches: the fastest of each, then the second …"""
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(row.base or row.key, []).append(row)
    questions: dict[tuple[object, ...], list[list[Row]]] = {}
    for family in families.values():
        first = family[0]
        batch = first.batch_global if first.scaling == "strong" else first.batch_per_worker
        questions.setdefault((first.workload, first.scaling, batch), []).append(family)
    for answers in questions.values():
        answers.sort(key=lambda family: -max(_speed(row) for row in family))
    kept: set[str] = set()
    for place in range(max(map(len, questions.values()), default=0)):
        for answers in questions.values():
            family = answers[place] if place < len(answers) else []
            if len(kept) + len(family) <= most:
                kept |= {row.key for row in family}
    return kept


def _setting(row: Row) -> tuple[object, ...]:
    """What one model of the step describes."""
    return (row.workload, row.framework, row.strategy, row.threads_per_worker, row.device, row.machine, dict(row.knobs))


def _speed(row: Row) -> float:
    return row.throughput.value if row.throughput else 0.0
