"""`paceline export`: records as CSV (a row a run), JSON (everything) or Parquet (every raw sample)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paceline.cli.output import add_common, command, emit, say
from paceline.errors import PacelineError
from paceline.record import Record
from paceline.record.export import to_csv, to_json, write_parquet, write_text
from paceline.spec import load_study
from paceline.workbench import Workbench, last_attempts, open_store, store_folder


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("export", help="records as CSV, JSON or Parquet")
    parser.add_argument("study", nargs="?", help="study file (TOML); without it: all records of the store")
    parser.add_argument("--format", choices=("csv", "json", "parquet"), help="default: csv")
    parser.add_argument("--samples", action="store_true", help="JSON: raw samples too (parquet always has them)")
    parser.add_argument("--output", metavar="FILE", help="write to a file instead of stdout (parquet needs one)")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    form = wanted_format(args)
    records = chosen(args)
    if form == "parquet":
        if not args.output:
            raise PacelineError(
                "parquet is not text",
                hint="name a file: add --output samples.parquet",
            )
        write_parquet(records, Path(args.output))
        say(f"written: {args.output} ({len(records)} run(s))")
        return 0
    if form == "json" and not args.output:
        emit(to_json(records, samples=args.samples))
        return 0
    import json

    text = to_csv(records) if form == "csv" else json.dumps(to_json(records, samples=args.samples), indent=1)
    if args.output:
        write_text(text, Path(args.output))
        say(f"written: {args.output} ({len(records)} run(s))")
    else:
        print(text, end="")
    return 0


def wanted_format(args: argparse.Namespace) -> str:
    """The one format that the flags agree on."""
    form = args.format or ("json" if args.json else "csv")
    if args.json and form != "json":
        raise PacelineError(f"--json and --format {form} exclude each other", hint="leave one of them out")
    if args.samples and form == "csv":
        raise PacelineError(
            "CSV has a row a run and no samples", hint="take --format json --samples, or --format parquet"
        )
    return str(form)


def chosen(args: argparse.Namespace) -> list[Record]:
    """The records of the study, or of the whole store."""
    folder = store_folder(args.store)
    if args.study:
        records = Workbench(load_study(args.study), folder).records()
    else:
        with open_store(folder) as store:
            records = last_attempts(store.records())
    if not records:
        raise PacelineError(
            f"nothing is recorded in {folder}", hint=f"measure something: {command(args, 'run', args.study or 'STUDY')}"
        )
    return records
