"""`paceline completion SHELL`: a script by which a shell completes commands, flags, files and names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from paceline.cli.output import say
from paceline.cli.subcommands import Subcommands

SHELLS = ("bash", "zsh", "fish")
LOAD = {
    "bash": 'eval "$(paceline completion bash)"   in ~/.bashrc',
    "zsh": "paceline completion zsh > ~/.zfunc/_paceline   with fpath+=~/.zfunc before compinit in ~/.zshrc",
    "fish": "paceline completion fish > ~/.config/fish/completions/paceline.fish",
}
"""Shell → how it is made to complete."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("completion", help="a script that makes a shell complete commands and flags")
    parser.add_argument("shell", choices=SHELLS, help="the shell it is for")
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    import shtab

    from paceline.cli import make_parser

    parser = make_parser()
    names = _names()
    for action in _actions(parser):
        _complete(action, names)
    print(shtab.complete(parser, shell=args.shell))
    if sys.stdout.isatty():  # not where a shell reads it at every start
        say(f"to use it: {LOAD[args.shell]}")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every flag and argument of every command."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask a parser what it takes
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for child in action.choices.values():
                yield from _actions(child)
        else:
            yield action


def _names() -> dict[str, list[str]]:
    """What a flag or argument is called in the program → the names that may stand there."""
    from paceline.environments import known_environments
    from paceline.frameworks import known_frameworks
    from paceline.spec.examples import examples
    from paceline.spec.networks import NETWORKS
    from paceline.workloads import MODELS

    return {
        "example": list(examples()),
        "names": list(known_environments()),
        "framework": list(known_frameworks()),
        "model": list(MODELS),
        "network": list(NETWORKS),
    }


def _complete(action: argparse.Action, names: Mapping[str, list[str]]) -> None:
    """Say what stands there: one of several names, a study, a file or a folder."""
    import shtab

    kind = str(action.metavar or "").partition(".")[0]
    if action.dest in names and action.nargs != 0:
        action.choices = names[action.dest]
    elif action.dest in {"study", "what"}:
        action.complete = shtab.glob("*.toml")  # type: ignore[attr-defined]
    elif kind == "FILE" or action.dest == "file":
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif kind == "DIR":
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
