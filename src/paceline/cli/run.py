"""`paceline run STUDY`: runs what is not recorded yet. It can be resumed; a failed trial does not stop the others."""

from __future__ import annotations

import argparse

from paceline.cli.output import add_common, add_details, command, emit, say, show, width
from paceline.cli.plan import nothing_can_run
from paceline.cli.progress import Narrator
from paceline.cli.subcommands import Subcommands
from paceline.compare import Comparison
from paceline.errors import RunIncompleteError
from paceline.folders import store_folder
from paceline.record import Record, summarize
from paceline.run.host_state import machine
from paceline.spec import Study, load_study
from paceline.workbench import Workbench, adaptive_repeats


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("run", help="measure a study; resumes where it stopped")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument("--retry-failed", action="store_true", help="repeat the runs that are recorded as failed")
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
    """Runs what is missing and shows all that is recorded.

    Args:
        args: the flags of the command.
        bench: the study and its store.
        again: the command that repeats the failed runs.
        details: whether phases, CPU and memory are shown, too.

    Raises:
        RunIncompleteError: some runs failed, or there was none.
    """
    new = bench.run(Narrator(), retry_failed=args.retry_failed, again=args.again, propose=adaptive_repeats(bench))
    snapshot = bench.snapshot()
    plan = snapshot.plan
    if args.json:
        key = "collectives" if snapshot.study.of_collectives else "comparison"
        emit(
            {
                "study": snapshot.study.name,
                "new": [run_json(record) for record in new],
                "runs": [run_json(record) for record in snapshot.records],
                "skipped": plan.to_json()["skipped"],
                key: snapshot.results.to_json(),
            }
        )
    else:
        from paceline.report.text import results_text

        show(results_text(snapshot.results, width(), details=details))
    if plan.is_impossible and not snapshot.records:
        raise nothing_can_run(snapshot.study.source)
    here = machine()["id"]
    rows = snapshot.comparison.rows
    failed = [record for record in snapshot.records if not record.ok and record.machine["id"] == here]
    missing = snapshot.prepared.catalog.unavailable
    empty = {row.label for row in rows if row.outcome == "no numbers"}
    if failed or missing or empty or not any(row.throughput for row in rows):
        ids = {record.trial.id for record in failed}
        names = ", ".join(sorted(ids | set(missing) | empty)) or "no trial could run"
        raise RunIncompleteError(
            f"not every run succeeded: {names}", hint=f"see the reasons above; run them again: {again}"
        )
    return snapshot.comparison


def tell_precision(study: Study, comparison: Comparison) -> None:
    """Says which trials of an adaptive study have a wider interval than it asks for."""
    if study.repeats.until is None:
        return
    for row in comparison.rows:
        half_width = row.throughput.relative_half_width if row.throughput else None
        if half_width is not None and half_width > study.repeats.until:
            say(
                f"{row.label}: the interval is ±{half_width:.1%} after {row.n_runs} runs, "
                f"the study asks for ±{study.repeats.until:.1%}; raise max under repeats, or use a quieter machine"
            )


def run_json(record: Record) -> dict[str, object]:
    """Returns one run as part of a JSON document."""
    # A collective has no samples per second, and its steps have messages of many sizes.
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
