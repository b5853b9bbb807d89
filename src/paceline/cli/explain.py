"""`paceline explain STUDY|TRIAL`: where the step goes, what holds it back, what to change; changes over time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paceline.cli.output import add_common, command, emit, say, show, width
from paceline.errors import PacelineError, RegressionError
from paceline.folders import store_folder
from paceline.spec import load_study
from paceline.units import FRACTION, parse_quantity
from paceline.workbench import Workbench

LEAST = "2%"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("explain", help="why a step takes as long as it does, and what would help")
    parser.add_argument("what", metavar="STUDY|TRIAL", help="study file (TOML), or the id of a recorded trial")
    parser.add_argument("--trial", metavar="ID", help="of a study: only this trial")
    parser.add_argument(
        "--experiments", metavar="DIR", help="write the study files that would confirm the findings there"
    )
    parser.add_argument(
        "--regressions",
        action="store_true",
        help=f"when did trials of the study become slower? exit code {RegressionError.exit_code} if one did",
    )
    parser.add_argument(
        "--least", default=LEAST, help="with --regressions: a smaller change does not count (default: %(default)s)"
    )
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.explainbench import explain_study, explain_trial, gaps_of

    folder = store_folder(args.store)
    is_study = args.what.endswith(".toml") or Path(args.what).exists()
    if args.regressions:
        return _regressions(args)
    if is_study:
        bench = _bench(args)
        comparison = bench.comparison()
        found = explain_study(
            bench, {row.trial: row.label for row in comparison.rows}, only={args.trial} if args.trial else None
        )
        gaps = gaps_of(bench, comparison) if args.trial is None else []
    else:
        found, gaps = [explain_trial(folder, args.what)], []
    if not found:
        raise PacelineError(
            f"{args.what}: nothing is recorded {f'of {args.trial} ' if args.trial else ''}in {folder}",
            hint=f"measure it: {command(args, 'run', args.what)}",
        )
    if args.experiments:
        _write_experiments(Path(args.experiments), found)
    if args.json:
        emit({"explanations": [one.to_json() for one in found], "gaps": [one.to_json() for one in gaps]})
        return 0
    from paceline.report.explanation import explanation_text, gap_text

    show("\n\n\n".join([*(explanation_text(one, width()) for one in found), gap_text(gaps, width())]).rstrip())
    say(f"next: {command(args, 'recommend' if is_study else 'export', args.what if is_study else '')}".rstrip())
    return 0


def _bench(args: argparse.Namespace) -> Workbench:
    study = load_study(args.what)
    if study.of_collectives:
        raise PacelineError(
            f"{args.what}: measures collectives, which have no step to explain",
            hint=f"see their tables: {command(args, 'report', args.what)}",
        )
    return Workbench(study, store_folder(args.store))


def _regressions(args: argparse.Namespace) -> int:
    from paceline.explain.regression import change_points
    from paceline.explainbench import history

    try:
        least = parse_quantity(args.least, FRACTION)
    except ValueError as error:
        raise PacelineError(f"--least: {error}", hint="write it like --least 2%") from None
    series = history(_bench(args))
    if not series:
        raise PacelineError(
            f"{args.what}: nothing is recorded yet", hint=f"measure it: {command(args, 'run', args.what)}"
        )
    found = change_points(series, least=least)
    if args.json:
        emit({"changes": [one.to_json() for one in found], "trials": len(series)})
    else:
        from paceline.report.explanation import change_point_text

        show(change_point_text(found, width()))
    if slower := [one for one in found if one.slower]:
        raise RegressionError(
            f"{len(slower)} of {len(series)} trial(s) became slower",
            hint=f"look closer: {command(args, 'explain', args.what)}",
        )
    return 0


def _write_experiments(folder: Path, found: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for explanation in found:
        for number, finding in enumerate(explanation.findings, start=1):
            if finding.experiment:
                path = folder / f"{explanation.trial}.{number}.toml"
                path.write_text(finding.experiment, encoding="utf-8")
                say(f"written: {path} ({finding.cause})")
