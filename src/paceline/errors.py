"""Every error a user can meet, each with its exit code and the next thing to type.

    PacelineError                 1
    ├── SpecError                 2   the study, or what was asked of it, is wrong
    ├── EnvironmentBuildError     3   a framework's environment cannot be made or is broken
    ├── StoreError                4   the store cannot be read or written
    ├── RunIncompleteError        5   some planned runs did not end well (they are recorded)
    ├── SiteError                 6   the place where processes run is not there or refuses
    ├── FairnessError             7   a framework was not shown to compute the same as the reference
    └── RegressionError           8   a trial became slower

Exit codes 0 (all well), 130 (interrupted) and 70 (a defect of ours) complete the list; they are documented in
docs/reference/commands.md. A leaf: imports nothing of ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PacelineError(Exception):
    """Something the user can act on: what happened, and what to type next."""

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
    """Where to read on, for a hint. A page and not a file: an installed package has no files beside it."""
    return f"see {page} in the documentation"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of a message about an unknown word: what is known, and the nearest of it."""
    names = sorted(known)
    nearest = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    suggestion = f" (did you mean '{nearest[0]}'?)" if nearest else ""
    return f"known: {', '.join(names)}{suggestion}"
