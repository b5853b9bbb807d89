"""What a page shows of single runs: one step on all ranks, resources over time, where the numbers come from. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.compare import Comparison
from paceline.compare.runs import fingerprint
from paceline.model.foreign.measured_step import measured_spans
from paceline.model.foreign.traces import Span
from paceline.record.record import MEASUREMENT, Record
from paceline.record.summary import summarize
from paceline.record.usage import UsageCurves, usage_of
from paceline.report.page import Source
from paceline.report.shorten import in_detail

MOST_SPANS = 6000
"""The most spans of all timelines of a page; with thousands of ranks one timeline is enough."""


def source_of(records: Sequence[Record]) -> Source:
    """Where the numbers of a report come from."""
    return Source(
        runs=len(records),
        began=min(record.started for record in records),
        ended=max(record.started + record.elapsed_s for record in records),
        versions=tuple(dict.fromkeys(record.paceline for record in records)),
    )


def machines_of(records: Sequence[Record]) -> list[dict[str, object]]:
    """Facts about each machine that the records name."""
    return list({record.machine["id"]: dict(record.machine) for record in records}.values())


def environments_of(records: Sequence[Record]) -> list[dict[str, object]]:
    """Facts about each environment that the records name."""
    return list({record.environment.get("name", "?"): dict(record.environment) for record in records}.values())


def last_runs(comparison: Comparison, records: Sequence[Record]) -> dict[str, Record]:
    """Key of a row → its last successful run, for the rows that a page looks at closely."""
    runs: dict[str, Record] = {}
    for row in in_detail(comparison):
        good = [
            record
            for record in records
            if record.trial.id == row.trial
            and record.ok
            and record.kind == MEASUREMENT
            and (record.machine.get("id"), fingerprint(record)) == (row.machine, row.fingerprint)
            and summarize(record) is not None
        ]
        if good:
            runs[row.key] = max(good, key=lambda record: record.repeat)
    return runs


def timelines_of(runs: Mapping[str, Record]) -> dict[str, list[Span]]:
    """Key of a row → one step of its run, on all ranks."""
    drawn: dict[str, list[Span]] = {}
    for key, record in runs.items():
        spans = measured_spans(record)
        if not drawn or sum(map(len, drawn.values())) + len(spans) <= MOST_SPANS:
            drawn[key] = spans
    return drawn


def resources_of(runs: Mapping[str, Record]) -> dict[str, list[UsageCurves]]:
    """Key of a row → what the processes of its run used."""
    return {key: used for key, record in runs.items() if (used := usage_of(record))}
