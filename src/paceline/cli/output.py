"""Where words and results go: words to stderr, results to stdout."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import Any

from paceline.cli.terminal import put

WIDTH = 80
"""Columns that everything fits in."""


def say(message: str = "") -> None:
    """Words for a person."""
    put(message, sys.stderr)


def emit(data: Any) -> None:
    """A result for a program."""
    print(json.dumps(data, indent=1, allow_nan=False))


def add_common(parser: argparse.ArgumentParser, *, store: bool = True) -> None:
    """The flags that every command has."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    if store:
        parser.add_argument(
            "--store", metavar="DIR", help="where records are kept (default: $PACELINE_STORE, else .paceline)"
        )


def add_details(parser: argparse.ArgumentParser) -> None:
    """The flag of commands that show results."""
    parser.add_argument(
        "--all", action="store_true", help="show phases, CPU, memory, and warnings and fairness at length, too"
    )


def command(args: argparse.Namespace, *words: str) -> str:
    """A command to type next, with the store that this one was told."""
    store = getattr(args, "store", None)
    return " ".join(["paceline", *words, *(["--store", store] if store else [])])


def show(text: str) -> None:
    """A result for a person."""
    put(text, sys.stdout)


def width() -> int:
    """Columns of the terminal; WIDTH where there is none, so that a file looks the same everywhere."""
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH
