"""`paceline doctor`: shows what this machine can run; for the rest, the reason and the fix."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from paceline.cli.output import add_common, emit, say
from paceline.cli.subcommands import Subcommands
from paceline.environments import examined
from paceline.errors import PacelineError
from paceline.frameworks import Framework, known_frameworks, load_framework
from paceline.plan.capabilities import Capabilities
from paceline.prepared import environment_of
from paceline.run.host_state import machine, moment
from paceline.sites import known_sites, load_site
from paceline.units import format_bytes

READY = {"ready": "ready", "buildable": "buildable", "stale": "buildable", "broken": "buildable"}
"""State of an environment → state of its framework; an environment that building would mend counts as buildable."""
BUSY_LOAD = 0.5
"""The load per core, before anything is measured, above which another program is likely to disturb."""
REINSTALL = "reinstall the package that offers it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """The state of a framework, of one of its devices, or of a site."""

    name: str
    state: str
    version: str | None = None
    reason: str = ""
    """Why it is not ready."""
    fix: str = ""
    """The command or change that would make it ready."""


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
    frameworks = [examination for name in names for examination in examine(name, strict=bool(args.framework))]
    sites = [_site(name) for name in sorted(known_sites())]
    if args.fix:
        for name in sorted(known_sites()):
            for removed in load_site(name).mend():
                say(f"removed {removed}")
    framework = load_framework(args.framework) if args.framework else None
    if args.json:
        emit(
            {
                "machine": machine(),
                "now": moment(),
                "frameworks": [asdict(examination) for examination in frameworks],
                "sites": [asdict(examination) for examination in sites],
                **({"capabilities": _capabilities(framework)} if framework else {}),
            }
        )
        return 0
    _print_machine()
    _print_states("framework", frameworks)
    _print_states("site", sites)
    if framework:
        _print_capabilities(framework.capabilities)
    next_build = next((examination for examination in frameworks if examination.state == "buildable"), None)
    say(f"next: {next_build.fix}" if next_build else "next: paceline init --example quickstart")
    return 0


def examine(name: str, *, strict: bool = False) -> list[Examined]:
    """Returns the state of a framework, and of its devices that were never tried.

    Args:
        name: the name of the framework.
        strict: raise the error of a broken framework, instead of reporting it beside the others.
    """
    try:
        framework = load_framework(name)
        environment = environment_of(framework)
        state = examined(environment)
    except PacelineError as error:
        if strict:
            raise
        return [Examined(name=name, state="unavailable", reason=error.message, fix=error.hint or "")]
    except Exception as error:  # noqa: BLE001  a third party's adapter that does not import
        return [_broken(name, error)]
    ready = READY.get(state.state, "unavailable")
    return [
        Examined(
            name=name,
            state=ready,
            # A framework without a package of its own (null) lives in our interpreter: that version is not its own.
            version=state.version if framework.package else None,
            reason=state.reason or "",
            fix=state.fix or (f"paceline env build {environment.name}" if ready == "buildable" else ""),
        ),
        *(
            Examined(
                name=f"{name}-{device}",
                state="untested",
                reason=f"the {device} path is implemented but was never tested by us",
                fix=f"try it with cluster.device = '{device}' and framework.interpreter = a Python that has it",
            )
            for device, tried in framework.capabilities.devices.items()
            if tried == "untested"
        ),
    ]


def _site(name: str) -> Examined:
    try:
        state = load_site(name).state()
    except Exception as error:  # noqa: BLE001  a third party's site that does not import
        return _broken(name, error)
    return Examined(name=name, state=state.state, reason=state.reason, fix=state.fix)


def _broken(name: str, error: Exception) -> Examined:
    return Examined(name=name, state="unavailable", reason=f"{type(error).__name__}: {error}", fix=REINSTALL)


def _capabilities(framework: Framework) -> dict[str, object]:
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


def _print_machine() -> None:
    facts, load = machine(), moment()["load1"]
    threads = facts["threads"] or 1
    print(f"machine     {facts['cpu_model']}, {threads} core(s), {format_bytes(facts['memory_bytes'])}")
    print(f"right now   load {load:.2f}" + ("   busy: measure when it is quiet" if load / threads > BUSY_LOAD else ""))


def _print_states(kind: str, examinations: Sequence[Examined]) -> None:
    for examination in examinations:
        version = f" {examination.version}" if examination.version else ""
        reason = f" ({examination.reason})" if examination.reason else ""
        print(f"{kind:<11} {examination.name}{version}: {examination.state}{reason}")
        if examination.fix and examination.state != "ready":
            print(f"            fix: {examination.fix}")


def _print_capabilities(capabilities: Capabilities) -> None:
    for name, knob in capabilities.knobs.items():
        choices = f" [{', '.join(map(str, knob.choices))}]" if knob.choices else ""
        print(f"knob        {name} = {knob.default}{choices}: {knob.doc}")
    for operation, library in capabilities.collectives.items():
        print(f"collective  {operation}: {library}")
    for name, strategy in capabilities.strategies.items():
        print(f"strategy    {name} ({strategy.strategy_class}): {strategy.doc}")
