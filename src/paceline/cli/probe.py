"""`paceline probe`: measures the machine itself.

`paceline probe machine` measures the peak of one core, `paceline probe network [STUDY]` the time of collectives and
messages by their size.
"""

from __future__ import annotations

import argparse

from paceline.cli.output import add_common, command, emit, say, show
from paceline.cli.run import run_and_show
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError, SpecError
from paceline.folders import store_folder
from paceline.frameworks import load_framework
from paceline.spec import Study, load_study, read_study
from paceline.workbench import Workbench

OPERATIONS = ("all_reduce", "push_pull", "send_recv")
"""The operations that are probed without a study, if the framework has them: gradient exchange and the link."""
FRAMEWORK, WORKERS, HOSTS, SITE = "torch", 2, 1, "local"
REPEATS = 3
WARMUP_ROUNDS, ROUNDS = 3, 20


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("probe", help="what the machine itself can do: collectives and links")
    subjects = parser.add_subparsers(dest="subject", metavar="WHAT", required=True)
    core = subjects.add_parser("machine", help="what one core can do at best: arithmetic and memory traffic")
    add_common(core)
    core.set_defaults(main=probe_machine)
    network = subjects.add_parser("network", help="time of collectives and messages against their size")
    network.add_argument("study", nargs="?", help="study file (TOML) with model = 'collective'; else one is made")
    network.add_argument("--framework", help=f"whose library to probe (default: {FRAMEWORK})")
    network.add_argument("--workers", type=int, help=f"ranks, over all hosts (default: {WORKERS})")
    network.add_argument("--site", help=f"where they run (default: {SITE})")
    network.add_argument("--hosts", type=int, help=f"hosts that they are spread over (default: {HOSTS})")
    network.add_argument("--retry-failed", action="store_true", help="repeat the runs that are recorded as failed")
    network.add_argument("--again", action="store_true", help="add repeats to those already recorded")
    add_common(network)
    network.set_defaults(main=main)


def probe_machine(args: argparse.Namespace) -> int:
    """Measures and stores the peak of one core, which `explain` compares steps with."""
    from dataclasses import asdict

    from paceline.record.peak import write_peak
    from paceline.run.lock import machine_lock
    from paceline.run.roofline import measure_peak

    with machine_lock(say):
        peak = measure_peak()
    path = write_peak(store_folder(args.store), peak)
    if args.json:
        emit({**asdict(peak), "file": str(path)})
    else:
        show(f"one core: {peak.flops_per_s / 1e9:.3g} GFLOP/s in single precision, {peak.bytes_per_s / 1e9:.3g} GB/s")
        say(f"kept in {path}")
        say(f"next: {command(args, 'explain', 'STUDY')}")
    return 0


def main(args: argparse.Namespace) -> int:
    study = _given(args) if args.study else _made(args)
    bench = Workbench(study, store_folder(args.store))
    run_and_show(args, bench, again=_again(args))
    following = (
        command(args, "report", args.study)
        if args.study
        else command(args, "export", "--format parquet", "--output samples.parquet")
    )
    say(f"next: {following}")
    return 0


def _given(args: argparse.Namespace) -> Study:
    for flag in ("framework", "workers", "site", "hosts"):
        if getattr(args, flag) is not None:
            raise PacelineError(f"--{flag}: is already set by {args.study}", hint="leave the flag out, or the study")
    study = load_study(args.study)
    if not study.of_collectives:
        raise SpecError(
            f"{args.study}: workload.model: should be 'collective'",
            hint="take an example: paceline init --example network   to train something: "
            + command(args, "run", args.study),
        )
    return study


def _made(args: argparse.Namespace) -> Study:
    """Returns a study that is made from the flags."""
    framework, site = args.framework or FRAMEWORK, args.site or SITE
    workers, hosts = (
        given if given is not None else usual
        for given, usual in (
            (args.workers, max(WORKERS, args.hosts or HOSTS)),
            (args.hosts, HOSTS),
        )
    )
    if workers < 1 or hosts < 1 or workers % hosts:
        raise PacelineError(
            f"--workers {workers}: cannot be divided equally among {hosts} host(s)", hint="take a multiple of --hosts"
        )
    offered = load_framework(framework, "--framework").capabilities.collectives
    return read_study(
        {
            "study": {"name": "probe-network", "question": "How fast are collectives and links here?"},
            "workload": {
                "model": "collective",
                "collective": {
                    "operation": [operation for operation in OPERATIONS if operation in offered] or [OPERATIONS[0]]
                },
            },
            "framework": {"name": framework},
            "cluster": {"site": site, "hosts": hosts, "workers_per_host": workers // hosts},
            "measure": {"warmup_steps": WARMUP_ROUNDS, "steps": ROUNDS, "repeats": REPEATS},
        },
        source="probe network",
    )


def _again(args: argparse.Namespace) -> str:
    """Returns this command with its arguments, to repeat the failed runs."""
    flags = [
        f"--{flag} {getattr(args, flag)}"
        for flag in ("framework", "workers", "site", "hosts")
        if getattr(args, flag) is not None
    ]
    return command(args, "probe", "network", *([args.study] if args.study else flags), "--retry-failed")
