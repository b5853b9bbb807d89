"""`paceline explain STUDY|TRIAL`: shows where the step time goes, what limits it, and what to change.

With `--regressions` it shows when trials became slower.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.output import add_common, command, emit, say, show, tell_outdated, width
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError, RegressionError
from paceline.folders import store_folder
from paceline.record.export import make_folder, write_text
from paceline.record.failures import none_ended_well
from paceline.snapshot import Snapshot
from paceline.spec import load_study
from paceline.units import FRACTION, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from paceline.explain.explanation import Explanation

LEAST = "2%"


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("explain", help="why a step takes as long as it does, and what would help")
    parser.add_argument("what", metavar="STUDY|TRIAL", help="study file (TOML), or the id of a recorded trial")
    parser.add_argument("--trial", metavar="ID", help="with a study: only this trial")
    parser.add_argument(
        "--experiments", metavar="DIR", help="write the study files that would confirm the findings there"
    )
    parser.add_argument(
        "--regressions",
        action="store_true",
        help=f"when did trials of the study become slower? exit code {RegressionError.exit_code} if one did",
    )
    parser.add_argument(
        "--least", default=LEAST, help="with --regressions: ignore smaller changes (default: %(default)s)"
    )
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    if args.regressions:
        return _regressions(args)
    is_study = args.what.endswith(".toml") or Path(args.what).exists()
    if is_study:
        snapshot = _snapshot(args)
        explanations = [explained for explained in snapshot.explanations if args.trial in {None, explained.trial}]
        gaps = snapshot.gaps if args.trial is None else []
        tell_outdated(args, snapshot, args.what)
    else:
        from paceline.recorded import explain_trial

        explanations, gaps = [explain_trial(store_folder(args.store), args.what)], []
    if not explanations:
        if is_study and (failed := _failed(args, snapshot)):
            raise failed
        which = f"of {args.trial} " if args.trial else ""
        raise PacelineError(
            f"{args.what}: nothing is recorded {which}in {store_folder(args.store)}",
            hint=f"measure it: {command(args, 'run', args.what)}",
        )
    if args.experiments:
        _write_experiments(Path(args.experiments), explanations)
    if args.json:
        emit(
            {
                "explanations": [explained.to_json() for explained in explanations],
                "gaps": [gap.to_json() for gap in gaps],
            }
        )
        return 0
    from paceline.report.explanation import explanation_text, gap_text

    show(
        "\n\n\n".join(
            [*(explanation_text(explained, width()) for explained in explanations), gap_text(gaps, width())]
        ).rstrip()
    )
    say(f"next: {command(args, 'recommend' if is_study else 'export', args.what if is_study else '')}".rstrip())
    return 0


def _snapshot(args: argparse.Namespace) -> Snapshot:
    study = load_study(args.what)
    if study.of_collectives:
        raise PacelineError(
            f"{args.what}: measures collectives, which have no step to explain",
            hint=f"see their tables: {command(args, 'report', args.what)}",
        )
    return Snapshot.of(study, store_folder(args.store))


def _regressions(args: argparse.Namespace) -> int:
    from paceline.explain.history import history
    from paceline.explain.regression import change_points

    try:
        least = parse_quantity(args.least, FRACTION)
    except ValueError as error:
        raise PacelineError(f"--least: {error}", hint="write it like --least 2%") from None
    snapshot = _snapshot(args)
    series = history(snapshot.records)
    if not series:
        if failed := _failed(args, snapshot):
            raise failed
        raise PacelineError(
            f"{args.what}: nothing is recorded yet", hint=f"measure it: {command(args, 'run', args.what)}"
        )
    changes = change_points(series, least=least)
    if args.json:
        emit({"changes": [change.to_json() for change in changes], "trials": len(series)})
    else:
        from paceline.report.explanation import change_point_text

        show(change_point_text(changes, width()))
    if slower := [change for change in changes if change.slower]:
        raise RegressionError(
            f"{len(slower)} of {len(series)} trial(s) became slower",
            hint=f"look closer: {command(args, 'explain', args.what)}",
        )
    return 0


def _failed(args: argparse.Namespace, snapshot: Snapshot) -> PacelineError | None:
    """Returns the error if runs are recorded and none succeeded; None otherwise."""
    records = [record for record in snapshot.records if args.trial in {None, record.trial.id}]
    return none_ended_well(args.what, records, again=command(args, "run", args.what, "--retry-failed"))


def _write_experiments(folder: Path, explanations: Iterable[Explanation]) -> None:
    make_folder(folder)
    for explanation in explanations:
        for number, finding in enumerate(explanation.findings, start=1):
            if finding.experiment:
                path = folder / f"{explanation.trial}.{number}.toml"
                write_text(finding.experiment, path)
                say(f"written: {path} ({finding.cause})")
