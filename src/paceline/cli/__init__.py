"""The command line: one module per command. It joins the stages and has none of their logic.

Text for people goes to stderr, results to stdout. Errors are caught only here.
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
"""The commands, in workflow order; each is a module of this package."""
EXIT_INTERRUPTED = 130
EXIT_DEFECT = 70
GARBAGE = 100_000
"""The objects that are made before the garbage collector looks for cycles. Python's default of 700 suits programs that
run for a long time."""


def make_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of all commands.

    Args:
        only: the command that is asked for; the flags of the others are left out, because loading them is slow.
    """
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
    """Returns the command of a command line; None if there is none, or it is unknown."""
    first = next((word for word in argv if not word.startswith("-")), None)
    return first if first in COMMANDS else None


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, runs the command, and turns errors into two lines and an exit code."""
    # SIGTERM is handled like Ctrl-C: it ends the workers and keeps what was recorded.
    signal.signal(signal.SIGTERM, _interrupt)
    # A command runs for seconds and makes little garbage. Looking for it less often saves a fifth of the time for a
    # large study.
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
    except BrokenPipeError:  # the reader of a pipe (head, less) has closed it
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
