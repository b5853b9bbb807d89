"""`paceline compare STUDY`: who is faster, by how much, how sure."""

from __future__ import annotations

import argparse
from typing import Any

from paceline.cli.output import add_common, add_details, command, emit, say, show, width
from paceline.compare import Collectives, Comparison
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.spec import load_study
from paceline.stats import MARGIN
from paceline.units import FRACTION, parse_quantity
from paceline.workbench import Workbench


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("compare", help="who is faster, by how much, how sure")
    parser.add_argument("study", help="study file (TOML)")
    add_comparison_flags(parser)
    add_common(parser)
    parser.set_defaults(main=main)


def add_comparison_flags(parser: argparse.ArgumentParser) -> None:
    add_details(parser)
    parser.add_argument(
        "--margin", default=f"{MARGIN:.0%}", help="two are called equal within this (default: %(default)s)"
    )
    parser.add_argument(
        "--across-machines", action="store_true", help="rank records of different machines against each other"
    )


def main(args: argparse.Namespace) -> int:
    found = make_comparison(args)
    if args.json:
        emit(found.to_json())
    else:
        from paceline.report.text import results_text

        show(results_text(found, width(), details=args.all))
        say(f"next: {command(args, 'report', args.study)}")
    return 0


def make_comparison(args: argparse.Namespace) -> Comparison | Collectives:
    """The comparison that the flags ask for, or tables of collectives; an error when nothing is recorded."""
    study = load_study(args.study)
    try:
        margin = parse_quantity(args.margin, FRACTION)
        if margin <= 0:
            raise ValueError(f"{args.margin!r} should be above zero")
    except ValueError as error:
        raise PacelineError(f"--margin: {error}", hint="write it like --margin 2%") from None
    bench = Workbench(study, store_folder(args.store))
    if not bench.records():
        raise PacelineError(
            f"{args.study}: nothing is recorded yet in {bench.folder}",
            hint=f"measure it: {command(args, 'run', args.study)}",
        )
    comparison = bench.comparison(margin=margin, across_machines=args.across_machines)
    return bench.collectives(comparison) if study.of_collectives else comparison
