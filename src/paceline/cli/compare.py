"""`paceline compare STUDY`: shows which trial is faster, by how much, and how certain that is."""

from __future__ import annotations

import argparse

from paceline.cli.output import add_common, add_details, command, emit, say, show, width
from paceline.cli.subcommands import Subcommands
from paceline.compare import Collectives, Comparison
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.snapshot import Snapshot
from paceline.spec import load_study
from paceline.stats import MARGIN
from paceline.units import FRACTION, parse_quantity


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("compare", help="which trial is faster, by how much, and how certain that is")
    parser.add_argument("study", help="study file (TOML)")
    add_comparison_flags(parser)
    add_common(parser)
    parser.set_defaults(main=main)


def add_comparison_flags(parser: argparse.ArgumentParser) -> None:
    add_details(parser)
    parser.add_argument(
        "--margin", default=f"{MARGIN:.0%}", help="trials are called equal within this margin (default: %(default)s)"
    )
    parser.add_argument(
        "--across-machines", action="store_true", help="rank records of different machines against each other"
    )


def main(args: argparse.Namespace) -> int:
    results = recorded_snapshot(args).results
    if args.json:
        emit(results.to_json())
    else:
        from paceline.report.text import results_text

        show(results_text(results, width(), details=args.all))
        say(f"next: {command(args, *next_words(results, 'report', args.study))}")
    return 0


def next_words(results: Comparison | Collectives, *words: str) -> tuple[str, ...]:
    """Returns the words of the next command; if no run succeeded, those that run the study again.

    Args:
        results: the results of the study.
        words: the next command; its second word is the study.
    """
    if isinstance(results, Comparison):
        measured = any(row.throughput for row in results.rows)
    else:
        measured = any(table.sizes for table in results.tables)
    return words if measured else ("run", words[1], "--retry-failed")


def recorded_snapshot(args: argparse.Namespace) -> Snapshot:
    """Returns the snapshot of the study, with the margin and the machines that the flags ask for.

    Raises:
        PacelineError: a flag is invalid, or nothing is recorded.
    """
    try:
        margin = parse_quantity(args.margin, FRACTION)
        if margin <= 0:
            raise ValueError(f"{args.margin!r} should be above zero")
    except ValueError as error:
        raise PacelineError(f"--margin: {error}", hint="write it like --margin 2%") from None
    snapshot = Snapshot.of(
        load_study(args.study), store_folder(args.store), margin=margin, across_machines=args.across_machines
    )
    if not snapshot.records:
        raise PacelineError(
            f"{args.study}: nothing is recorded yet in {snapshot.folder}",
            hint=f"measure it: {command(args, 'run', args.study)}",
        )
    return snapshot
