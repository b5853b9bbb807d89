"""`paceline calibrate STUDY`: measures what the model needs, fits it, and names what could not be identified."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from paceline.cli.output import add_common, command, emit, say, show, width
from paceline.cli.progress import Narrator
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.spec import load_study
from paceline.units import SECONDS, parse_quantity
from paceline.workbench import Workbench

if TYPE_CHECKING:
    from paceline.model.fitting.calibration import Calibration

BUDGET = "10min"


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("calibrate", help="fit the performance model to a study, measuring what it needs")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument(
        "--budget",
        default=BUDGET,
        help="time for additional runs, chosen to narrow the prediction most (default: %(default)s)",
    )
    parser.add_argument("--no-run", action="store_true", help="only fit the recorded runs")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.campaigns import keep_models, measure_for_model
    from paceline.model.fitting.kept import calibrations_path
    from paceline.run import Budget

    try:
        seconds = parse_quantity(args.budget, SECONDS)
    except ValueError as error:
        raise PacelineError(f"--budget: {error}", hint="write it like --budget 10min") from None
    bench = Workbench(load_study(args.study), store_folder(args.store))
    if not args.no_run:
        measure_for_model(bench, Narrator(), Budget(seconds=seconds))
    snapshot = bench.snapshot()
    calibrations = keep_models(snapshot)
    path = calibrations_path(snapshot.folder, snapshot.study.name)
    if args.json:
        emit({"calibrations": [_json(calibration) for calibration in calibrations], "file": str(path)})
    else:
        from paceline.report.model import calibration_text

        show("\n\n".join(calibration_text(calibration, width()) for calibration in calibrations))
        say(f"kept in {path}")
        say(f"next: {command(args, 'predict', args.study, '--workers 1..64')}")
    return 0


def _json(calibration: Calibration) -> dict[str, object]:
    data = calibration.to_json()
    del data["draws"], data["vector"], data["low"], data["high"], data["names"]
    return {**data, "parameters": {name: value.to_json() for name, value in calibration.parameters().items()}}
