"""`paceline env build|list|remove`: manages the isolated, pinned environments of the frameworks."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass

from paceline.cli.output import add_common, emit, say
from paceline.cli.subcommands import Subcommands
from paceline.environments import Environment, examined, known_environments, load_environment
from paceline.units import format_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentRow:
    """One environment as the command shows it."""

    name: str
    state: str
    version: str | None
    """The version of its main package."""
    size_bytes: int | None
    """The space on disk; None if nothing is there."""
    reason: str
    """Why it is not ready; "" if it is."""
    fix: str
    """The command that would make it ready."""
    lock: str
    """The digest of what should be installed."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("env", help="build, list and remove the frameworks' pinned environments")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, action, help_text in (
        ("list", list_all, "every environment with its state and size"),
        ("build", build, "build, or rebuild when the lock changed"),
        ("remove", remove, "free the space"),
    ):
        sub = actions.add_parser(name, help=help_text)
        if name != "list":
            sub.add_argument("names", nargs="+", metavar="NAME", help="environment, e.g. torch-cpu")
        if name == "build":
            sub.add_argument("--rebuild", action="store_true", help="even if it is ready")
        add_common(sub, store=False)
        sub.set_defaults(main=action)


def list_all(args: argparse.Namespace) -> int:
    rows = [describe(load_environment(name)) for name in known_environments()]
    if args.json:
        emit({"environments": [asdict(row) for row in rows]})
        return 0
    for row in rows:
        size = format_bytes(row.size_bytes) if row.size_bytes else "-"
        print(f"{row.name:<20} {row.state:<12} {row.version or '-':<14} {size:>10}  {row.reason}")
    waiting = [row.name for row in rows if row.state != "ready"]
    say(f"next: paceline env build {waiting[0]}" if waiting else "next: paceline doctor")
    return 0


def build(args: argparse.Namespace) -> int:
    return _each(args, lambda environment: environment.create(say, rebuild=args.rebuild))


def remove(args: argparse.Namespace) -> int:
    def free(environment: Environment) -> None:
        size = environment.state().size_bytes
        environment.remove()
        say(
            f"{environment.name}: removed, {format_bytes(size)} freed" if size else f"{environment.name}: nothing there"
        )

    return _each(args, free)


def _each(args: argparse.Namespace, act: Callable[[Environment], None]) -> int:
    environments = [load_environment(name) for name in args.names]
    for environment in environments:
        act(environment)
    rows = [describe(environment) for environment in environments]
    if args.json:
        emit({"environments": [asdict(row) for row in rows]})
    else:
        for row in rows:
            print(f"{row.name} is {row.state}")
        say("next: paceline doctor")
    return 0


def describe(environment: Environment) -> EnvironmentRow:
    state = examined(environment)
    return EnvironmentRow(
        name=environment.name,
        state=state.state,
        version=state.version,
        size_bytes=state.size_bytes,
        reason=state.reason or "",
        fix=state.fix or "",
        lock=environment.lock,
    )
