"""`paceline run STUDY`: run what is not recorded yet. Resumable; one broken trial never stops the others."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from paceline.cli.output import add_common, add_details, command, emit, say, show, width
from paceline.cli.progress import Narrator
from paceline.compare import Comparison, more_repeats
from paceline.errors import RunIncompleteError
from paceline.folders import store_folder
from paceline.plan import Proposal
from paceline.record import Record, summarize
from paceline.run.host_state import machine
from paceline.spec import Study, load_study
from paceline.workbench import Workbench


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("run", help="measure a study; resumes where it stopped")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument("--retry-failed", action="store_true", help="run again what is recorded as failed")
    parser.add_argument("--again", action="store_true", help="add the study's repeats to those already recorded")
    add_details(parser)
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    study = load_study(args.study)
    bench = Workbench(study, store_folder(args.store))
    comparison = run_and_show(args, bench, again=command(args, "run", args.study, "--retry-failed"), details=args.all)
    tell_precision(study, comparison)
    say(f"next: {command(args, 'report', args.study)}")
    return 0


def run_and_show(args: argparse.Namespace, bench: Workbench, *, again: str, details: bool = False) -> Comparison:
    """Run what is missing and show all that is recorded.

    Args:
        again: what to type to run again what failed.
        details: whether phases, CPU, memory and the rest are shown, too.

    Raises:
        RunIncompleteError: some runs did not end well, or there was none.
    """
    study = bench.study
    new = bench.run(
        Narrator(), retry_failed=args.retry_failed, again=args.again, propose=adaptive_repeats(study, bench)
    )
    records = bench.records()
    comparison = bench.comparison()
    plan = bench.plan()
    if args.json:
        emit(
            {
                "study": study.name,
                "new": [run_json(record) for record in new],
                "runs": [run_json(record) for record in records],
                "skipped": plan.to_json()["skipped"],
                **results_json(bench, comparison),
            }
        )
    else:
        show_results(bench, comparison, details=details)
    here = machine()["id"]
    failed = [record for record in records if not record.ok and record.machine["id"] == here]
    missing = bench.catalog().unavailable
    empty = {row.label for row in comparison.rows if row.outcome == "no numbers"}
    if failed or missing or empty or not any(row.throughput for row in comparison.rows):
        ids = {record.trial.id for record in failed}
        names = ", ".join(sorted(ids | set(missing) | empty)) or "no trial could run"
        raise RunIncompleteError(
            f"not every run ended well: {names}", hint=f"the reasons stand above; run them again: {again}"
        )
    return comparison


def results_json(bench: Workbench, comparison: Comparison) -> dict[str, Any]:
    """What the records of the study say, for a program: a comparison, or tables of collectives."""
    if bench.study.of_collectives:
        return {"collectives": bench.collectives(comparison).to_json()}
    return {"comparison": comparison.to_json()}


def show_results(bench: Workbench, comparison: Comparison, *, details: bool) -> None:
    """The same for a person."""
    from paceline.report.text import results_text

    found = bench.collectives(comparison) if bench.study.of_collectives else comparison
    show(results_text(found, width(), details=details))


def tell_precision(study: Study, comparison: Comparison) -> None:
    """Say which trials of an adaptive study stayed wider than it asked for."""
    if study.repeats.until is None:
        return
    for row in comparison.rows:
        found = row.throughput
        if found is None or found.low is None or found.high is None:
            continue
        half_width = (found.high - found.low) / 2 / found.value
        if half_width > study.repeats.until:
            say(
                f"{row.label}: known to ±{half_width:.1%} after {found.n_runs} runs, "
                f"not to ±{study.repeats.until:.1%}; raise max under repeats, or quiet the machine"
            )


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
    # A collective has no samples a second, and its steps are of many sizes.
    summary = summarize(record) if record.trial.workload.collective is None else None
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
