"""`paceline export`: writes records as CSV (one row per run), JSON (everything), Parquet (every sample) or an archive.

It also writes one measured step as a trace, and the output of a user's script.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paceline.cli.output import add_common, command, document, emit, say
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.record import MEASUREMENT, Record, last_attempts
from paceline.record.archive import write_archive
from paceline.record.export import to_csv, to_json, write_bytes, write_parquet, write_text
from paceline.record.output import output_text
from paceline.record.reading import open_store
from paceline.snapshot import Snapshot
from paceline.spec import load_study

TRACES = ("perfetto", "chakra")
FILES = {"parquet": (write_parquet, "samples.parquet"), "archive": (write_archive, "records.zip")}
"""Format that is not text → the function that writes it, and an example of a file name."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("export", help="records as CSV, JSON or Parquet; a measured step as a trace")
    parser.add_argument("study", nargs="?", help="study file (TOML); without it: all records of the store")
    parser.add_argument(
        "--format",
        choices=("csv", "json", "parquet", "archive", "log", *TRACES),
        help="default: csv; archive: everything in one small file; log: the output of a script; perfetto, chakra: one "
        "measured step",
    )
    parser.add_argument(
        "--run",
        metavar="ID",
        help="for traces: the run; by default the last one with the most workers; for log: by default all",
    )
    parser.add_argument("--samples", action="store_true", help="JSON: raw samples too (parquet always has them)")
    parser.add_argument(
        "--output", metavar="FILE", help="write to a file instead of stdout (parquet, archive and chakra need one)"
    )
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    form = wanted_format(args)
    records = chosen(args)
    if form in TRACES:
        return _trace(args, form, records)
    if form in FILES:
        write, example = FILES[form]
        if not args.output:
            raise PacelineError(f"{form} is not text", hint=f"name a file: add --output {example}")
        write(records, Path(args.output))
        say(f"written: {args.output} ({len(records)} run(s))")
        return 0
    if form == "json" and not args.output:
        emit(to_json(records, samples=args.samples))
        return 0
    if form == "log":
        text = _log(args, records)
    else:
        text = to_csv(records) if form == "csv" else document(to_json(records, samples=args.samples)) + "\n"
    if args.output:
        write_text(text, Path(args.output))
        say(f"written: {args.output} ({len(records)} run(s))")
    else:
        print(text, end="")
    return 0


def _log(args: argparse.Namespace, records: list[Record]) -> str:
    text = output_text([record for record in records if args.run in (None, record.run_id)])
    if not text:
        raise PacelineError(
            f"no run {args.run or ''} has kept output".replace("  ", " "),
            hint="only scripts of yours print something that is kept; list runs: " + command(args, "export"),
        )
    return text


def _trace(args: argparse.Namespace, form: str, records: list[Record]) -> int:
    """Writes one measured step of one run; for Chakra one file per rank."""
    from paceline.model.foreign.measured_step import measured_spans
    from paceline.model.foreign.traces import chakra_trace, chrome_trace
    from paceline.stats.known_by import MEASURED, SIMULATED

    record = _traced(args, records)
    spans = measured_spans(record)
    if form == "perfetto":
        by = SIMULATED if record.trial.framework.simulated else MEASURED
        text = chrome_trace(spans, by=by, run=record.run_id, trial=record.trial.id)
        if not args.output:
            print(text)
            return 0
        write_text(text, Path(args.output))
        say(f"written: {args.output} (run {record.run_id}; open it in ui.perfetto.dev)")
        return 0
    if not args.output:
        raise PacelineError("a Chakra trace is not text", hint="name a file: add --output step.et")
    output = Path(args.output)
    for rank in sorted({span.rank for span in spans}):
        path = output.with_name(f"{output.stem}.{rank}{output.suffix or '.et'}")
        write_bytes(chakra_trace([span for span in spans if span.rank == rank]), path)
        say(f"written: {path} (run {record.run_id})")
    return 0


def _traced(args: argparse.Namespace, records: list[Record]) -> Record:
    """Returns the run that is asked for; by default the last of those with the most workers."""
    candidates = [
        record
        for record in records
        if record.ok and record.kind == MEASUREMENT and record.trial.workload.collective is None
    ]
    if args.run:
        candidates = [record for record in candidates if record.run_id == args.run]
    if not candidates:
        raise PacelineError(
            f"no run {args.run or ''} with measured steps", hint=f"list them: {command(args, 'export')}"
        )
    return max(reversed(candidates), key=lambda record: record.trial.workers)


def wanted_format(args: argparse.Namespace) -> str:
    """Returns the format that the flags ask for.

    Raises:
        PacelineError: the flags contradict each other.
    """
    form = args.format or ("json" if args.json else "csv")
    if args.json and form != "json":
        raise PacelineError(f"--json and --format {form} exclude each other", hint="leave one of them out")
    if args.samples and form == "csv":
        raise PacelineError(
            "CSV has one row per run and no samples", hint="take --format json --samples, or --format parquet"
        )
    return str(form)


def chosen(args: argparse.Namespace) -> list[Record]:
    """Returns the records of the study, or of the whole store.

    Raises:
        PacelineError: nothing is recorded.
    """
    folder = store_folder(args.store)
    if args.study:
        records = Snapshot.of(load_study(args.study), folder).records
    else:
        with open_store(folder) as store:
            records = last_attempts(store.records())
    if not records:
        raise PacelineError(
            f"nothing is recorded in {folder}", hint=f"measure something: {command(args, 'run', args.study or 'STUDY')}"
        )
    return records
