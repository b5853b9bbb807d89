"""`paceline doctor`: what this machine can run; for the rest, the reason and the fix."""

from __future__ import annotations

import argparse
from typing import Any

from paceline.cli.output import add_common, emit, say
from paceline.cli.subcommands import Subcommands
from paceline.environments import examined
from paceline.errors import PacelineError
from paceline.frameworks import Framework, known_frameworks, load_framework
from paceline.prepared import environment_of
from paceline.run.host_state import machine, moment
from paceline.sites import known_sites, load_site
from paceline.units import format_bytes

READY = {"ready": "ready", "buildable": "buildable", "stale": "buildable", "broken": "buildable"}
"""State of an environment → state of its framework; whatever can be mended by building is buildable."""
BUSY_LOAD = 0.5
"""Load per core before anything is measured, above which another program is likely to disturb."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("doctor", help="what this machine can run; for the rest, the reason and the fix")
    parser.add_argument(
        "--framework", metavar="NAME", help="show everything about one framework: strategies, knobs, devices"
    )
    parser.add_argument(
        "--fix", action="store_true", help="remove what a killed Paceline left behind, and nothing else"
    )
    add_common(parser, store=False)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    names = [args.framework] if args.framework else sorted(known_frameworks())
    report: dict[str, Any] = {
        "machine": machine(),
        "now": moment(),
        "frameworks": [row for name in names for row in examine(name, strict=bool(args.framework))],
        "sites": [_site(name) for name in sorted(known_sites())],
    }
    if args.fix:
        for site in sorted(known_sites()):
            for removed in load_site(site).mend():
                say(f"removed {removed}")
    if args.framework:
        report["capabilities"] = _capabilities(load_framework(args.framework))
    if args.json:
        emit(report)
        return 0
    _print(report)
    next_build = next((f for f in report["frameworks"] if f["state"] == "buildable"), None)
    say(f"next: {next_build['fix']}" if next_build else "next: paceline init --example quickstart")
    return 0


def examine(name: str, *, strict: bool = False) -> list[dict[str, Any]]:
    """The state of a framework, and of its devices that were never tried. A broken one must not hide the others."""
    try:
        framework = load_framework(name)
        environment = environment_of(framework)
        state = examined(environment)
    except PacelineError as error:
        if strict:
            raise
        return [_row(name, "unavailable", None, error.message, error.hint or "")]
    except Exception as error:  # noqa: BLE001  a third party's adapter that does not import
        return [
            _row(
                name,
                "unavailable",
                None,
                f"{type(error).__name__}: {error}",
                "reinstall the package that offers it",
            )
        ]
    ready = READY.get(state.state, "unavailable")
    fix = state.fix or (f"paceline env build {environment.name}" if ready == "buildable" else "")
    # A framework without a package of its own (null) lives in our interpreter, whose version is not the framework's.
    version = state.version if framework.package else None
    rows = [_row(name, ready, version, state.reason or "", fix)]
    rows += [
        _row(
            f"{name}-{device}",
            "untested",
            None,
            f"the {device} path is implemented but was never tested by us",
            f"try it with cluster.device = '{device}' and framework.interpreter = a Python that has it",
        )
        for device, tried in framework.capabilities.devices.items()
        if tried == "untested"
    ]
    return rows


def _row(name: str, state: str, version: str | None, reason: str, fix: str) -> dict[str, Any]:
    return {"name": name, "state": state, "version": version, "reason": reason, "fix": fix}


def _site(name: str) -> dict[str, Any]:
    try:
        site = load_site(name)
        state = site.state()
    except Exception as error:  # noqa: BLE001  as above
        return _row(
            name,
            "unavailable",
            None,
            f"{type(error).__name__}: {error}",
            "reinstall the package that offers it",
        )
    return _row(name, state.state, None, state.reason, state.fix)


def _capabilities(framework: Framework) -> dict[str, Any]:
    capabilities = framework.capabilities
    return {
        "strategies": {
            name: {"class": s.strategy_class, "max_workers": s.max_workers, "doc": s.doc}
            for name, s in capabilities.strategies.items()
        },
        "data_parallel": capabilities.data_parallel,
        "knobs": {
            name: {"default": k.default, "choices": list(k.choices), "doc": k.doc}
            for name, k in capabilities.knobs.items()
        },
        "collectives": dict(capabilities.collectives),
        "devices": dict(capabilities.devices),
        "inputs": sorted(capabilities.inputs),
        "phases": list(capabilities.phases),
        "layer_times": capabilities.layer_times,
    }


def _print(report: dict[str, Any]) -> None:
    facts, now = report["machine"], report["now"]
    print(f"machine     {facts['cpu_model']}, {facts['threads']} core(s), {format_bytes(facts['memory_bytes'])}")
    busy = now["load1"] / facts["threads"]
    print(f"right now   load {now['load1']:.2f}" + ("   busy: measure when it is quiet" if busy > BUSY_LOAD else ""))
    for kind in ("frameworks", "sites"):
        for row in report[kind]:
            version = f" {row['version']}" if row["version"] else ""
            line = f"{kind[:-1]:<11} {row['name']}{version}: {row['state']}"
            print(line + (f" ({row['reason']})" if row["reason"] else ""))
            if row["fix"] and row["state"] != "ready":
                print(f"            fix: {row['fix']}")
    for name, knob in report.get("capabilities", {}).get("knobs", {}).items():
        choices = f" [{', '.join(map(str, knob['choices']))}]" if knob["choices"] else ""
        print(f"knob        {name} = {knob['default']}{choices}: {knob['doc']}")
    for operation, library in report.get("capabilities", {}).get("collectives", {}).items():
        print(f"collective  {operation}: {library}")
    for name, strategy in report.get("capabilities", {}).get("strategies", {}).items():
        print(f"strategy    {name} ({strategy['class']}): {strategy['doc']}")
