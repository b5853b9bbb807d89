"""The output of all commands: text for people about the progress goes to stderr, results go to stdout."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from paceline.cli.terminal import put

if TYPE_CHECKING:
    from paceline.snapshot import Snapshot

DOCUMENT_VERSION = 2
"""The schema version of every JSON document (docs/reference/json.md)."""
WIDTH = 80
"""The number of columns that all text fits into."""


def say(message: str = "") -> None:
    """Prints a line for a person to stderr."""
    put(message, sys.stderr)


def document(data: Mapping[str, object]) -> str:
    """Returns a result as the text of a JSON document."""
    return json.dumps({"schema_version": DOCUMENT_VERSION, **data}, indent=1, allow_nan=False)


def emit(data: Mapping[str, object]) -> None:
    """Prints a result as a JSON document."""
    print(document(data))


def add_common(parser: argparse.ArgumentParser, *, store: bool = True) -> None:
    """Adds the flags that all commands have."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    if store:
        parser.add_argument(
            "--store", metavar="DIR", help="where records are kept (default: $PACELINE_STORE, else .paceline)"
        )


def add_details(parser: argparse.ArgumentParser) -> None:
    """Adds the flag of the commands that show results."""
    parser.add_argument(
        "--all", action="store_true", help="also show phases, CPU and memory, and warnings and fairness in full"
    )


def command(args: argparse.Namespace, *words: str) -> str:
    """Returns a command to type next, with the store of the present one."""
    store = getattr(args, "store", None)
    return " ".join(["paceline", *words, *(["--store", store] if store else [])])


def show(text: str) -> None:
    """Prints a result for a person to stdout."""
    put(text, sys.stdout)


def width() -> int:
    """Returns the columns of the terminal; WIDTH if there is none, so that a file does not depend on the terminal."""
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH


def tell_outdated(args: argparse.Namespace, snapshot: Snapshot, study: str) -> None:
    """Says which stored calibrations are older than the records, and how to renew them."""
    if snapshot.outdated:
        renew = command(args, "calibrate", study, "--no-run")
        say(
            f"The kept calibration is older than the records or this version ({', '.join(snapshot.outdated)}): "
            f"this answer uses a fresh fit. Keep it: {renew}"
        )
