"""`paceline plan STUDY`: the dry run. Trials, skips with reasons, estimated time; touches nothing."""

from __future__ import annotations

import argparse
from typing import Any

from paceline.cli.output import add_common, emit, say
from paceline.plan import Plan
from paceline.spec import load_study
from paceline.units import format_seconds
from paceline.workbench import Workbench, store_folder


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("plan", help="what a study would do: trials, skips with reasons, estimated time")
    parser.add_argument("study", help="study file (TOML)")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    study = load_study(args.study)
    plan = Workbench(study, store_folder(args.store)).plan()
    if args.json:
        emit(plan.to_json())
    else:
        print("\n".join(describe(plan)))
        say(f"next: paceline run {args.study}")
    return 0


def describe(plan: Plan) -> list[str]:
    """The plan in words."""
    lines = []
    by_trial: dict[str, int] = {}
    for run in plan.runs:
        by_trial[run.trial.id] = by_trial.get(run.trial.id, 0) + 1
    for trial, count in by_trial.items():
        lines.append(f"run   {count} × {trial}")
    if plan.done:
        lines.append(f"done  {len(plan.done)} run(s) are recorded already")
    lines += [f"skip  {skip.trial.id}: {skip.reason}" for skip in plan.skipped]
    lines.append(
        f"{len(plan.runs)} run(s) of {len(by_trial)} trial(s), estimated {format_seconds(plan.estimate_s)}"
        if plan.runs
        else "nothing left to run"
    )
    return lines
