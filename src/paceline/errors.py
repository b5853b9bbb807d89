"""Every error that a user can meet, each with its exit code and a hint what to type next.

    PacelineError                 1
    ├── SpecError                 2   the study, or what was asked of it, is wrong
    ├── EnvironmentBuildError     3   a framework's environment cannot be made or is broken
    ├── StoreError                4   the store cannot be read or written
    ├── RunIncompleteError        5   some planned runs did not end well (they are recorded)
    ├── SiteError                 6   the place where processes run is not there or refuses
    ├── FairnessError             7   a framework was not shown to compute the same as the reference
    └── RegressionError           8   a trial became slower

Exit codes 0 (all well), 130 (interrupted) and 70 (a defect of ours) complete the list; they are documented in
docs/reference/commands.md. This module imports nothing else of Paceline.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PacelineError(Exception):
    """An error that the user can act on: what happened, and a hint what to type next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SpecError(PacelineError):
    exit_code = 2


class EnvironmentBuildError(PacelineError):
    exit_code = 3


class StoreError(PacelineError):
    exit_code = 4


class RunIncompleteError(PacelineError):
    exit_code = 5


class SiteError(PacelineError):
    exit_code = 6


class FairnessError(PacelineError):
    exit_code = 7


class RegressionError(PacelineError):
    exit_code = 8


def documented(page: str) -> str:
    """A hint to a page of the documentation; not to a file, because an installed package has none beside it."""
    return f"see {page} in the documentation"


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """The hint for an unknown word: the allowed words, and the one nearest to it."""
    names = sorted(allowed)
    nearest = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    suggestion = f" (did you mean '{nearest[0]}'?)" if nearest else ""
    return f"known: {', '.join(names)}{suggestion}"
