"""`paceline validate`: shows the errors of the model on published tables or own records, beside those of others."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.output import add_common, emit, say, show, width
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError, documented

if TYPE_CHECKING:
    from paceline.model.validation.replay import Replayed
    from paceline.model.validation.validate import Validation

PUBLISHED = "PACELINE_PUBLISHED"
"""The environment variable that names the folder of the published tables."""
STEP_TIMES, TRACE, SPEEDS = (
    "pollux_sia_steptimes.csv",
    "traces/hkbu_googlenet_layerwise_k80.csv",
    "hkbu_mgwfbp_bcaffe_real.csv",
)
FIT = "num_nodes<=4"
WAIT_FREE, GOOGLENET, GOOGLENET_BATCH = "WFBP", "GoogleNet", 64.0


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("validate", help="the errors of the model, next to those of other models")
    parser.add_argument("--table", metavar="FILE.csv", help=f"measurements of others; {documented('reference/tables')}")
    parser.add_argument("--fit", metavar="CONDITION", help='rows to fit on, e.g. "num_nodes<=4"; the rest is predicted')
    parser.add_argument("--only", metavar="CONDITION", help='rows to use, e.g. "cluster=aws"')
    parser.add_argument(
        "--published", nargs="?", const="", metavar="DIR", help=f"the published tables (default: ${PUBLISHED})"
    )
    parser.add_argument("--split", metavar="FILE.toml", help="our own records, with the split that a file fixes")
    parser.add_argument("--points", action="store_true", help="print every point")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    sources = [name for name in ("table", "published", "split") if getattr(args, name) is not None]
    if len(sources) != 1:
        raise PacelineError(
            "what should be validated?", hint='one of: --table FILE.csv --fit "num_nodes<=4", --published, --split FILE'
        )
    return {"table": _table, "published": _published, "split": _split}[sources[0]](args)


def _table(args: argparse.Namespace) -> int:
    if not args.fit:
        raise PacelineError("--table: which rows should be fitted on?", hint='add --fit "num_nodes<=4"')
    validation = table_validation(Path(args.table), args.fit, args.only)
    if args.json:
        emit(validation.to_json())
    else:
        from paceline.report.model import validation_text

        show(validation_text(validation, width(), points=args.points))
        say("next: paceline calibrate STUDY")
    return 0


def table_validation(path: Path, fit: str, only: str | None) -> Validation:
    from paceline.model.foreign.tables import matching, points_of, read_table
    from paceline.model.validation.validate import validate_table

    schema, rows = read_table(path)
    if not rows:
        raise PacelineError(f"{path}: no rows", hint=documented("reference/tables"))
    fits = matching(fit, list(rows[0]))
    wanted = matching(only, list(rows[0])) if only else lambda _row: True
    points = [point for point in points_of(schema, rows) if wanted(point.row)]
    if not points:
        raise PacelineError(f"{path}: no rows to validate on", hint="loosen --only")
    return validate_table(points, lambda point: fits(point.row), say)


def _published(args: argparse.Namespace) -> int:
    folder = published_folder(args.published)
    if folder is None:
        say(f"skipped: the published tables are not here; name their folder: export {PUBLISHED}=DIR")
        if args.json:
            emit({"skipped": f"{PUBLISHED} is not set"})
        return 0
    steps = table_validation(folder / STEP_TIMES, FIT, "cluster=aws")
    replayed = googlenet_replay(folder)
    if args.json:
        emit({**steps.to_json(), "replay": [trace.to_json() for trace in replayed]})
    else:
        from paceline.report.model import replay_text, validation_text

        show(f"{validation_text(steps, width(), points=args.points)}\n\n{replay_text(replayed)}")
    return 0


def published_folder(folder_name: str | None) -> Path | None:
    name = folder_name or os.environ.get(PUBLISHED)
    if not name:
        return None
    folder = Path(name)
    if not folder.is_dir():
        raise PacelineError(f"{folder}: no such folder", hint=f"name the folder of the published tables: {PUBLISHED}")
    return folder


def googlenet_replay(folder: Path) -> list[Replayed]:
    """Replays the layer trace and compares it with the speed-ups measured with wait-free back-propagation."""
    from paceline.model.foreign.tables import number, read_table
    from paceline.model.validation.replay import layer_traces, replay

    _, rows = read_table(folder / TRACE)
    _, speeds = read_table(folder / SPEEDS)
    measured = {
        int(row["nodes"]): float(number(row["value"]) or 0.0)
        for row in speeds
        if row["model"] == GOOGLENET and row["strategy"] == WAIT_FREE and row["metric"] == "throughput"
    }
    traces = [trace for trace in layer_traces(rows) if WAIT_FREE in trace.name]
    return replay(traces, measured, batch=GOOGLENET_BATCH)


def _split(args: argparse.Namespace) -> int:
    from paceline.recorded import split_validation

    validation = split_validation(Path(args.split), args.store)
    if args.json:
        emit(validation.to_json())
    else:
        from paceline.report.model import split_text

        show(split_text(validation, width()))
    return 0
