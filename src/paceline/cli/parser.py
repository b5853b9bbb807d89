"""A parser whose errors are like all others: they say what is wrong and what to type next. Knows no command."""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Iterable
from typing import NoReturn

from paceline.errors import SpecError


class Parser(argparse.ArgumentParser):
    """A parser that raises SpecError instead of ending the program, and suggests the most similar word."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(message.removeprefix("argument "), hint=f"see the options: {self.prog} --help")

    def parse_known_args(  # type: ignore[override]  # argparse also takes namespaces of other types
        self, args: Iterable[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            flags = [word for word in left if word.startswith("-")]
            if flags:
                raise SpecError(
                    f"{self.prog}: no such flag: {flags[0]}", hint=self._hint(flags[0], self._option_string_actions)
                )
            raise SpecError(f"{self.prog}: unexpected argument: {' '.join(left)}", hint=self._hint("", ()))
        return parsed, left

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Checks the value of an argument with choices, such as the command."""
        if action.choices is not None and value not in action.choices:
            raise SpecError(
                f"{'/'.join(action.option_strings) or action.metavar or action.dest}: {value!r} is not known",
                hint=self._hint(str(value), action.choices),
            )

    def _hint(self, word: str, choices: Iterable[str]) -> str:
        nearest = difflib.get_close_matches(word.partition("=")[0], list(choices), n=1, cutoff=0.5)
        suggestion = f"did you mean '{nearest[0]}'?   " if nearest else ""
        return f"{suggestion}see all: {self.prog} --help"


def whole(text: str) -> int:
    """Returns a count on the command line: a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} should be a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} should be at least 1")
    return number


def amount(text: str) -> float:
    """Returns a price or a power on the command line: a number above zero."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number") from None
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} should be a number above zero")
    return number
