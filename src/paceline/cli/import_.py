"""`paceline import STUDY FILE`: what other tools measured, as calibration of a study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paceline.cli.output import add_common, command, emit, say, show
from paceline.errors import SpecError
from paceline.folders import store_folder
from paceline.spec import load_study

KINDS = ("nccl-tests", "osu", "layers", "kineto")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("import", help="nccl-tests, OSU, layer and Kineto traces as calibration")
    parser.add_argument("study", help="study file (TOML) whose model shall know it")
    parser.add_argument("file", help="output of nccl-tests or OSU, a layer trace (CSV), a PyTorch profile (JSON)")
    parser.add_argument("--kind", choices=KINDS, help="by default told from what is in the file")
    parser.add_argument("--framework", help="whose steps it is about; by default every framework's of the study")
    parser.add_argument("--workers", type=int, help="ranks that took part, where the file does not say")
    parser.add_argument("--hosts", type=int, default=1, help="that they ran on (default: %(default)s)")
    parser.add_argument("--batch", type=int, help="of a profile: samples a worker and step")
    parser.add_argument("--network", help="between the hosts: 10GbE, or a bandwidth such as 25Gbit")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.cli.predict import network
    from paceline.model.imported import Setting, add_import, read_import

    study = load_study(args.study)
    bandwidth, latency = network(args.network)
    setting = Setting(
        framework=args.framework, workers=args.workers, hosts=args.hosts, batch=args.batch, bandwidth=bandwidth,
        latency_s=latency,
    )  # fmt: skip
    found = read_import(_text(Path(args.file)), file=Path(args.file).name, kind=args.kind, setting=setting)
    path = add_import(store_folder(args.store), study.name, found)
    if args.json:
        emit({"study": study.name, "file": found.file, "kind": found.kind, "workers": found.setting.workers,
              "tells": dict(found.told), "kept_in": str(path)})  # fmt: skip
    else:
        from paceline.report.model import imported_text

        show(imported_text(found))
        say(f"kept in {path}")
        say(f"next: {command(args, 'calibrate', args.study, '--no-run')}")
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}", hint="give a text file") from None
