"""Runs that did not end well: the error if there are no others, and whether a further try could succeed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paceline.errors import RunIncompleteError
from paceline.record.record import Outcome, OutcomeKind, Record

SET_UP = frozenset({"at the start", "during setup"})
"""The stages of a run before its first step."""
BY_CHANCE = re.compile(
    r"in use|already bound|timed? ?out|timeout|deadline|refused|reset by peer|broken pipe|connection|unreachable|"
    r"temporar|try again|too many open files|no space left|out of memory|cannot allocate|killed by signal|is gone",
    re.IGNORECASE,
)
"""Words of failures that may not come again: a port in use, a late peer, a full disk or memory."""


def none_ended_well(source: str, records: Sequence[Record], *, again: str = "") -> RunIncompleteError | None:
    """Returns the error of a study whose recorded runs all failed; None if one ended well or none is recorded.

    Args:
        source: the study file.
        records: the recorded runs of the study.
        again: the command that runs them again; by default `paceline run` with the study.
    """
    if not records or any(record.ok for record in records):
        return None
    first = records[0].outcome
    runs = "its only recorded run" if len(records) == 1 else f"all {len(records)} recorded runs"
    return RunIncompleteError(
        f"{source}: {runs} failed; the first {first.stage or 'at once'}: {first.reason or first.kind.value}",
        hint=f"fix that, then: {again or f'paceline run {source} --retry-failed'}",
    )


def would_fail_again(outcome: Outcome, repeat: int) -> str | None:
    """Says why further repeats of a trial would end as this one did; None if they may end well.

    A worker that fails by itself before its first step fails whenever it is started. A failure that involves a port, a
    peer or memory may not come again.
    """
    if outcome.kind is not OutcomeKind.FAILED or outcome.stage not in SET_UP:
        return None
    if BY_CHANCE.search(" ".join([outcome.reason or "", *outcome.log_tail[-3:]])):
        return None
    return f"repeat {repeat + 1} failed {outcome.stage}, and further ones would fail too: {outcome.reason}"
