"""`paceline plan STUDY`: shows what a study would run, what it skips and why, and the estimated time. Runs nothing."""

from __future__ import annotations

import argparse
from collections import Counter

from paceline.cli.output import add_common, command, emit, say, show
from paceline.cli.subcommands import Subcommands
from paceline.compare.labels import label_rows
from paceline.errors import RunIncompleteError
from paceline.folders import store_folder
from paceline.plan import Plan
from paceline.snapshot import Snapshot
from paceline.spec import load_study
from paceline.units import format_seconds


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("plan", help="what a study would do: trials, skips with reasons, estimated time")
    parser.add_argument("study", help="study file (TOML)")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    plan = Snapshot.of(load_study(args.study), store_folder(args.store)).plan
    if args.json:
        emit(plan.to_json())
    else:
        show("\n".join(describe(plan)))
    if plan.is_impossible:
        raise nothing_can_run(args.study)
    if args.json:
        return 0
    say(f"next: {command(args, 'run' if plan.runs or not plan.done else 'report', args.study)}")
    return 0


def nothing_can_run(study: str) -> RunIncompleteError:
    """Returns the error of a study whose trials are all skipped."""
    return RunIncompleteError(
        f"{study}: no trial can run here: all are skipped",
        hint="see the reasons above: change the study, or see what there is: paceline doctor",
    )


def names_of(plan: Plan) -> dict[str, str]:
    """Returns trial id → what distinguishes it, followed by its id."""
    names: dict[str, str] = {}
    for prefix, trials in (
        ("", [trial for trial in plan.trials if not trial.measure.evidence]),
        ("proof: ", [trial for trial in plan.trials if trial.measure.evidence]),
    ):
        labels = label_rows(trials, [None] * len(trials)).each
        names |= {t.id: f"{prefix}{label}  ({t.id})" for t, label in zip(trials, labels, strict=True)}
    return names


def describe(plan: Plan) -> list[str]:
    """Returns the lines that describe a plan."""
    names = names_of(plan)
    lines = []
    counts = Counter(run.trial.id for run in plan.runs)
    lines += [f"run   {count} × {names[trial]}" for trial, count in counts.items()]
    if plan.done:
        lines.append(f"done  {len(plan.done)} run(s) are recorded already")
    lines += [f"skip  {names[skip.trial.id]}: {skip.reason}" for skip in plan.skipped]
    slow = {run.trial.id for run in plan.runs if run.estimate_s > run.trial.limits.time_s}
    lines += [
        f"note  {names[trial]}: may not finish within its time limit; raise time_limit under [measure]"
        for trial in slow
    ]
    lines.append(
        f"{len(plan.runs)} run(s) of {len(counts)} trial(s), estimated {format_seconds(plan.estimate_s)}"
        if plan.runs
        else "nothing can run"
        if plan.is_impossible
        else "nothing left to run"
    )
    return lines
