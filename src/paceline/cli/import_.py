"""`paceline import STUDY FILE`: imports measurements of other tools as calibration of a study, or a profile as a run.

`paceline import RECORDS.zip` adds exported records to the store.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from paceline.cli.output import add_common, command, emit, say, show
from paceline.cli.subcommands import Subcommands
from paceline.errors import SpecError
from paceline.folders import store_folder
from paceline.plan import Trial
from paceline.spec import load_study

KINDS = ("nccl-tests", "osu", "layers", "kineto")


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser(
        "import", help="import nccl-tests, OSU, layer and Kineto traces as calibration, or records"
    )
    parser.add_argument(
        "study",
        help="study file (TOML) to calibrate with it; or, alone, an archive of records (export --format archive)",
    )
    parser.add_argument(
        "file",
        nargs="*",
        help="output of nccl-tests or OSU, a layer trace (CSV), a PyTorch profile (JSON); with --as-run one per rank",
    )
    parser.add_argument(
        "--as-run",
        action="store_true",
        help="keep profiles as a run of the study, for explain and report; they are never ranked against measured runs",
    )
    parser.add_argument("--kind", choices=KINDS, help="by default recognised from the contents of the file")
    parser.add_argument(
        "--framework", help="framework whose steps were measured; by default all frameworks of the study"
    )
    parser.add_argument("--workers", type=int, help="ranks that took part, where the file does not say")
    parser.add_argument("--hosts", type=int, default=1, help="hosts that they ran on (default: %(default)s)")
    parser.add_argument("--batch", type=int, help="for a profile: samples per worker and step")
    parser.add_argument("--network", help="between the hosts: 10GbE, or a bandwidth such as 25Gbit")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.cli.predict import network
    from paceline.model.foreign.imported import ImportContext, add_import, read_import

    if not args.file:
        return _records(args)
    if args.as_run:
        return _as_run(args)
    if len(args.file) > 1:
        raise SpecError("one file at a time", hint="several are the ranks of one run: add --as-run")
    study = load_study(args.study)
    (file,) = args.file
    bandwidth, latency = network(args.network)
    setting = ImportContext(
        framework=args.framework,
        workers=args.workers,
        hosts=args.hosts,
        batch=args.batch,
        bandwidth=bandwidth,
        latency_s=latency,
    )
    imported = read_import(_text(Path(file)), file=Path(file).name, kind=args.kind, setting=setting)
    path = add_import(store_folder(args.store), study.name, imported)
    if args.json:
        emit(
            {
                "study": study.name,
                "file": imported.file,
                "kind": imported.kind,
                "workers": imported.setting.workers,
                "tells": asdict(imported.told),
                "kept_in": str(path),
            }
        )
    else:
        from paceline.report.model import imported_text

        show(imported_text(imported))
        say(f"kept in {path}")
        say(f"next: {command(args, 'calibrate', args.study, '--no-run')}")
    return 0


def _records(args: argparse.Namespace) -> int:
    from paceline.record.archive import unpack_archive

    path = Path(args.study)
    if path.suffix == ".toml":
        raise SpecError(f"{path}: there is no file to import", hint=f"name a file too: paceline import {path} FILE")
    folder = store_folder(args.store)
    added, present = unpack_archive(path, folder)
    if args.json:
        emit(
            {
                "study": None,
                "file": path.name,
                "kind": "archive",
                "workers": None,
                "tells": {"added": added, "known": present},
                "kept_in": str(folder),
            }
        )
    else:
        show(f"{path.name}: {added} run(s) added" + (f", {present} were already present" if present else ""))
        say(f"next: {command(args, 'report', 'STUDY')}")
    return 0


def _as_run(args: argparse.Namespace) -> int:
    from paceline.model.foreign.profiled import run_of
    from paceline.prepared import PreparedStudy
    from paceline.record import Store
    from paceline.workloads import Graph
    from paceline.workloads.cost import cost

    study = load_study(args.study)
    folder, prepared = store_folder(args.store), PreparedStudy.of(study)
    trial = _trial_of(args, prepared.trials)
    workload = prepared.catalog.workload(trial.workload.model, trial.workload.options)
    paths = [Path(name) for name in args.file]
    record = run_of(
        [_text(path) for path in paths],
        trial,
        study=study.name,
        started=max(path.stat().st_mtime for path in paths),
        gradient_bytes=cost(workload).gradient_bytes if isinstance(workload, Graph) else None,
    )
    with Store.open(folder, create=True) as store:
        store.add(record)
    summary = {"run": record.run_id, "steps": record.samples.num_rows // trial.ranks if record.samples else 0}
    if args.json:
        emit(
            {
                "study": study.name,
                "file": ", ".join(path.name for path in paths),
                "kind": "kineto",
                "workers": trial.workers,
                "tells": summary,
                "kept_in": str(folder),
            }
        )
    else:
        show(f"{summary['run']}: {summary['steps']} steps of {trial.ranks} rank(s)")
        say(f"next: {command(args, 'explain', args.study)}")
    return 0


def _trial_of(args: argparse.Namespace, trials: Sequence[Trial]) -> Trial:
    """Returns the one trial of the study that the flags select.

    Raises:
        SpecError: the flags select no trial or several.
    """
    wanted = {"workers": args.workers, "hosts": args.hosts if args.hosts > 1 else None, "batch": args.batch}

    def matches(trial: Trial) -> bool:
        values = {"workers": trial.workers, "hosts": trial.cluster.hosts, "batch": trial.workload.batch_per_worker}
        network = trial.cluster.network.label if trial.cluster.network else None
        return (
            all(value in (None, values[name]) for name, value in wanted.items())
            and args.framework in (None, trial.framework.name)
            and args.network in (None, network)
        )

    fitting = [trial for trial in trials if matches(trial)]
    if len(fitting) != 1:
        raise SpecError(
            f"{args.study}: {len(fitting)} trials fit",
            hint="name one with --workers, --hosts, --batch, --framework and --network",
        )
    return fitting[0]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}", hint="give a text file") from None
