"""`paceline calibrate STUDY`: measure what the model needs, fit it, and say what could not be told."""

from __future__ import annotations

import argparse
from typing import Any

from paceline.cli.output import add_common, command, emit, say, show, width
from paceline.cli.progress import Narrator
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.spec import load_study
from paceline.units import SECONDS, parse_quantity
from paceline.workbench import Workbench

BUDGET = "10min"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("calibrate", help="fit the performance model to a study, measuring what it needs")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument(
        "--budget",
        default=BUDGET,
        help="time for runs beyond the study's own, chosen to tell most (default: %(default)s)",
    )
    parser.add_argument("--no-run", action="store_true", help="only fit what is recorded")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.model.fitting.kept import calibrations_path
    from paceline.modelbench import calibrate, companions, proposer
    from paceline.run import Budget

    try:
        seconds = parse_quantity(args.budget, SECONDS)
    except ValueError as error:
        raise PacelineError(f"--budget: {error}", hint="write it like --budget 10min") from None
    study = load_study(args.study)
    bench = Workbench(study, store_folder(args.store))
    if not args.no_run:
        for companion in companions(bench):
            say(f"for the model: {companion.name}")
            Workbench(companion, bench.folder).run(Narrator())
        propose = proposer(bench) if seconds > 0 and not study.of_collectives else None
        bench.run(Narrator(), propose=propose, budget=Budget(seconds=seconds))
    found = calibrate(bench)
    path = calibrations_path(bench.folder, study.name)
    if args.json:
        emit({"calibrations": [_json(one) for one in found], "file": str(path)})
    else:
        from paceline.report.model import calibration_text

        show("\n\n".join(calibration_text(one, width()) for one in found))
        say(f"kept in {path}")
        say(f"next: {command(args, 'predict', args.study, '--workers 1..64')}")
    return 0


def _json(calibration: Any) -> dict[str, Any]:
    data = calibration.to_json()
    del data["draws"], data["vector"], data["low"], data["high"], data["names"]
    return {**data, "parameters": calibration.parameters()}
