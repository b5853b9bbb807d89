"""`paceline report STUDY`: the answer, the evidence, the machine, and how to repeat it, as text."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from paceline.cli.compare import add_comparison_flags, make_comparison
from paceline.cli.output import WIDTH, add_common, command, say, show, width
from paceline.record.export import write_text
from paceline.spec import load_study
from paceline.workbench import Workbench, store_folder


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("report", help="the answer with its evidence, as text")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument("--output", metavar="FILE", help="write it to a file instead of stdout")
    add_comparison_flags(parser)
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.compare import Comparison
    from paceline.report import report, results_answer

    study = load_study(args.study)
    found = make_comparison(args)
    records = Workbench(study, store_folder(args.store)).records()
    machines = {record.machine["id"]: dict(record.machine) for record in records}
    environments = {record.environment.get("name", "?"): dict(record.environment) for record in records}
    again = command(args, "run", args.study, "--again")
    if args.json:
        kind = "comparison" if isinstance(found, Comparison) else "collectives"
        document = {
            "study": study.name,
            "question": study.question,
            "answer": results_answer(found),
            kind: found.to_json(),
            "machines": list(machines.values()),
            "environments": list(environments.values()),
            "repeat_with": again,
        }
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    else:
        text = report(
            study=study.name, question=study.question, results=found, machines=list(machines.values()),
            environments=list(environments.values()), command=again,
            width=WIDTH if args.output else width(),
        )  # fmt: skip
    if args.output:
        write_text(text, Path(args.output))
        say(f"written: {args.output}")
    else:
        show(text.rstrip("\n"))
    say(f"next: {command(args, 'export', args.study, '--format csv')}")
    return 0
