"""The cautions of an answer in one or two sentences: why it may be less reliable than it looks."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import Collectives, CollectiveTable, Comparison, Row
from paceline.report import numbers
from paceline.report.sentences import is_refused
from paceline.stats import LEAST_RUNS

DISTURBED = frozenset({"noisy-neighbour", "starved"})
"""Warnings that say that other programs took what a run should have had."""
LEAST_DISTURBED = 0.1
"""Part of the runs; fewer move no mean by much, and the warnings name them."""
IMPOSSIBLE = "impossible-"
"""How the codes of warnings begin that say that a number contradicts another."""


def cautions(results: Comparison | Collectives) -> list[str]:
    """The most serious first; [] where nothing speaks against the answer."""
    rows: Sequence[Row | CollectiveTable] = results.tables if isinstance(results, Collectives) else results.rows
    measured = [row for row in rows if row.n_runs]
    return [
        *_contradictions(measured),
        *_disturbances(measured),
        *_few_runs(measured),
        *_unranked(results),
        *_simulated(measured),
        *_bad(rows),
    ]


def _contradictions(rows: Sequence[Row | CollectiveTable]) -> list[str]:
    codes = sorted({warning.code for row in rows for warning in row.warnings if warning.code.startswith(IMPOSSIBLE)})
    if not codes:
        return []
    return [f"Some numbers contradict each other ({', '.join(codes)}): do not trust them until this is resolved."]


def _disturbances(rows: Sequence[Row | CollectiveTable]) -> list[str]:
    total = sum(row.n_runs for row in rows)
    disturbed = sum(
        max((warning.n_runs for warning in row.warnings if warning.code in DISTURBED), default=0) for row in rows
    )
    if disturbed < LEAST_DISTURBED * total or not disturbed:
        return []
    if disturbed >= total:
        return ["All runs were disturbed by other programs: treat this as preliminary."]
    were = "was" if disturbed == 1 else "were"
    counted = f"{disturbed} of {numbers.counted(total, 'run')} {were}"
    return [f"{counted} disturbed by other programs: treat small differences as preliminary."]


def _few_runs(rows: Sequence[Row | CollectiveTable]) -> list[str]:
    few = [row for row in rows if row.n_runs < LEAST_RUNS]
    if not few:
        return []
    who = "" if len(few) == len(rows) else f"for {len(few)} of {len(rows)} configurations "
    return [f"There are fewer than three runs {who}and so no intervals: raise repeats under [measure]."]


def _unranked(results: Comparison | Collectives) -> list[str]:
    """Pairs that must not be ranked, beside others that are; where none is, the answer itself says so."""
    if isinstance(results, Collectives):
        return []
    refused = [pair for pair in results.verdicts if is_refused(pair)]
    if not refused or len(refused) == len(results.verdicts):
        return []
    why = ", ".join(sorted({pair.verdict for pair in refused}))
    are = "is" if len(refused) == 1 else "are"
    return [f"{len(refused)} of {len(results.verdicts)} pairs {are} not ranked ({why})."]


def _simulated(rows: Sequence[Row | CollectiveTable]) -> list[str]:
    return ["Times are simulated, not measured."] if any(row.simulated for row in rows) else []


def _bad(rows: Sequence[Row | CollectiveTable]) -> list[str]:
    bad = sum(not row.n_runs for row in rows)
    if not bad or bad == len(rows):
        return []
    return [f"{bad} of {len(rows)} configurations {'has' if bad == 1 else 'have'} no successful run."]
