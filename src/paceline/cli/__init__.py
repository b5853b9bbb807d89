"""The command line: one module a command, in the order of the work. Joins the stages, holds none of their logic.

Human text goes to stderr, results to stdout. Errors are caught here and nowhere else.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from types import FrameType

from paceline._version import __version__
from paceline.cli.output import say
from paceline.cli.parser import Parser
from paceline.errors import PacelineError

COMMANDS = (
    "doctor",
    "init",
    "env",
    "probe",
    "plan",
    "run",
    "check",
    "compare",
    "calibrate",
    "predict",
    "validate",
    "explain",
    "recommend",
    "report",
    "import",
    "export",
    "completion",
)
"""Modules of this package, in workflow order."""
EXIT_INTERRUPTED = 130
EXIT_DEFECT = 70
GARBAGE = 100_000
"""Objects made before the collector looks for cycles; Python's own 700 is for programs that run for days."""


def make_parser(only: str | None = None) -> argparse.ArgumentParser:
    """All commands; of a single one that is asked for, the others without their flags, which are slow to load."""
    parser = Parser(
        prog="paceline",
        description="Which framework and configuration trains my model best here? Measured, with evidence.",
        epilog="start here: paceline doctor   then: paceline init --example quickstart",
    )
    parser.add_argument("--version", action="version", version=f"paceline {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        if only in {None, name}:
            import_module(f"paceline.cli.{name}{'_' if iskeyword(name) else ''}").add_parser(commands)
        else:
            commands.add_parser(name)
    return parser


def asked_command(argv: Sequence[str]) -> str | None:
    """The command of a command line; None where there is none, or none that is known."""
    first = next((word for word in argv if not word.startswith("-")), None)
    return first if first in COMMANDS else None


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run the command, turn errors into two lines and an exit code."""
    # Ending by SIGTERM keeps what was recorded and ends the workers, just like Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    # A command lives for seconds and makes little garbage: looking for it less often saves a fifth of a large study.
    gc.set_threshold(GARBAGE)
    show_traceback = False
    try:
        words = sys.argv[1:] if argv is None else argv
        args = make_parser(asked_command(words)).parse_args(words)
        show_traceback = args.traceback
        return int(args.main(args))
    except PacelineError as error:
        if show_traceback:
            raise
        say(f"error: {error.message}")
        if error.hint:
            say(f"hint:  {error.hint}")
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted; all recorded runs are kept. Continue with the same command.")
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe (head, less) has seen enough
        sys.stderr.close()
        return 0
    except Exception as error:
        if show_traceback:
            raise
        say(f"error: a defect in Paceline: {type(error).__name__}: {error}")
        say("hint:  run the same command as paceline --traceback … to see where, and please report it")
        return EXIT_DEFECT


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
