"""`paceline run STUDY`: run what is not recorded yet. Resumable; one broken trial never stops the others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from paceline.cli.output import add_common, emit, say, show, width
from paceline.compare import more_repeats
from paceline.errors import RunIncompleteError
from paceline.plan import Plan, PlannedRun, Proposal
from paceline.record import Record, summarize
from paceline.spec import Study, load_study
from paceline.units import format_seconds
from paceline.workbench import Workbench, store_folder


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("run", help="measure a study; resumes where it stopped")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument("--retry-failed", action="store_true", help="run again what is recorded as failed")
    parser.add_argument("--again", action="store_true", help="add the study's repeats to those already recorded")
    add_common(parser)
    parser.set_defaults(main=main)


class Narrator:
    """Tells a person what happens, between runs only: the host is silent while workers measure."""

    def say(self, message: str) -> None:
        say(message)

    def planned(self, plan: Plan) -> None:
        for skip in plan.skipped:
            say(f"skip {skip.trial.id}: {skip.reason}")
        already = f", {len(plan.done)} recorded already" if plan.done else ""
        say(f"{len(plan.runs)} run(s) to do{already}; estimated {format_seconds(plan.estimate_s)}")

    def before(self, run: PlannedRun, number: int, total: int, remaining_s: float) -> None:
        say(f"[{number}/{total}] {run.trial.id} repeat {run.repeat + 1}   about {format_seconds(remaining_s)} left")

    def after(self, record: Record) -> None:
        say(f"        {result_line(record)}")
        for doubt in record.doubts:
            if doubt.code == "simulated":  # the line above says so already
                continue
            say(f"        warning: {doubt.message}")


def result_line(record: Record) -> str:
    """One run in one line."""
    summary = summarize(record)
    if record.ok and summary is not None:
        simulated = " (simulated)" if record.trial.framework.simulated else ""
        return (
            f"{summary.throughput:.4g} samples/s, step {format_seconds(summary.step_s)}{simulated}, "
            f"run took {format_seconds(record.elapsed_s)}"
        )
    return f"{record.outcome.kind.value} {record.outcome.stage}: {record.outcome.reason}"


def main(args: argparse.Namespace) -> int:
    study = load_study(args.study)
    bench = Workbench(study, store_folder(args.store))
    new = bench.run(
        Narrator(), retry_failed=args.retry_failed, again=args.again, propose=adaptive_repeats(study, bench)
    )
    records = bench.records()
    comparison = bench.comparison()
    plan = bench.plan()
    if args.json:
        emit({
            "study": study.name,
            "new": [run_json(record) for record in new],
            "runs": [run_json(record) for record in records],
            "skipped": plan.to_json()["skipped"],
            "comparison": comparison.to_json(),
        })  # fmt: skip
    else:
        from paceline.report import comparison_table

        show(comparison_table(comparison, width()))
    failed = [record for record in records if not record.ok]
    if failed or bench.broken:
        names = ", ".join(sorted({record.trial.id for record in failed} | set(bench.broken)))
        raise RunIncompleteError(
            f"not every run ended well: {names}",
            hint=f"the reasons stand above; run them again: paceline run {args.study} --retry-failed",
        )
    say(f"next: paceline report {args.study}")
    return 0


def adaptive_repeats(study: Study, bench: Workbench) -> Any:
    """The proposer of more repeats where the interval is still too wide; None when the study fixed the number."""
    if study.repeats.until is None:
        return None

    def propose(records: Sequence[Record]) -> Proposal | None:
        wanted = more_repeats(records, bench.trials(), study.repeats)
        if not wanted:
            return None
        return Proposal(
            study=study,
            repeats=wanted,
            reason=f"{len(wanted)} trial(s) are not yet known to ±{study.repeats.until:.1%}",
        )

    return propose


def run_json(record: Record) -> dict[str, Any]:
    """One run for a program."""
    summary = summarize(record)
    return {
        "run": record.run_id,
        "trial": record.trial.id,
        "repeat": record.repeat,
        "outcome": record.outcome.kind.value,
        "reason": record.outcome.reason,
        "elapsed_s": record.elapsed_s,
        "step_s": summary.step_s if summary else None,
        "throughput": summary.throughput if summary else None,
        "simulated": record.trial.framework.simulated,
        "warnings": [{"code": d.code, "message": d.message, "hint": d.hint} for d in record.doubts],
    }
