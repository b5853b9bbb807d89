"""Orders the runs of a trial by time, with their step times and the versions that they ran with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.explain.regression import Moment
from paceline.record.record import Record
from paceline.record.true_time import true_summary


def history(records: Sequence[Record]) -> dict[str, list[Moment]]:
    """Groups all successful runs that have step times by trial and machine."""
    series: dict[str, list[Moment]] = {}
    for record in records:
        moment = _moment(record) if record.ok else None
        if moment is not None:
            series.setdefault(f"{record.trial.id}@{record.machine['id']}", []).append(moment)
    return series


def before_and_after(records: Sequence[Record]) -> tuple[list[float], list[float]]:
    """Returns the steps with the present versions and the steps with all earlier versions, on the latest machine."""
    runs = sorted(records, key=lambda record: record.started)
    same_machine = [record for record in runs if record.machine["id"] == runs[-1].machine["id"]]
    moments = [moment for record in same_machine if (moment := _moment(record)) is not None]
    now = [moment.step_s for moment in moments if moment.versions == moments[-1].versions]
    return now, [moment.step_s for moment in moments if moment.versions != moments[-1].versions]


def _moment(record: Record) -> Moment | None:
    summary = true_summary(record)
    if summary is None:
        return None
    return Moment(
        started=record.started,
        step_s=summary.step_s,
        run=record.run_id,
        versions=_versions(record),
    )


def _versions(record: Record) -> dict[str, str]:
    """Returns the versions that may make the same trial faster or slower."""
    return {
        "paceline": record.paceline,
        "environment": str(record.environment.get("fingerprint", "")),
        "worker": record.input_facts.worker or "",
        "kernel": str(record.machine.get("kernel", "")),
    }
