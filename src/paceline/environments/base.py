"""The interface of an environment, in which a framework is installed. It does not know what is measured there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

Say = Callable[[str], None]
"""Receives progress messages, one line at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentState:
    """Whether an environment can be used and, if it cannot, the reason and the command that helps."""

    state: Literal["ready", "buildable", "unavailable", "stale", "broken"]
    """stale: built from another lock; broken: not as its lock defines it; `create` makes both ready."""
    version: str | None = None
    """Version of the main package: as it is installed, or as it would be."""
    reason: str | None = None
    """Why the environment is not ready, in words."""
    fix: str | None = None
    """The command that helps."""
    size_bytes: int | None = None
    """Space on disk; None if nothing is built or the interpreter is the user's own."""


class Fingerprint(TypedDict):
    """What is installed in an environment at this moment, as a record keeps it."""

    name: str
    lock: str
    python: str | None
    """Full version of the interpreter; None if the environment is not built."""
    packages: dict[str, str]
    """Distribution → version."""


class Environment(ABC):
    """A place in which a framework is installed."""

    name: str
    """Id, as `paceline env` shows it; a path for the user's own interpreter."""

    @property
    @abstractmethod
    def lock(self) -> str:
        """Digest of the packages that should be installed; with another lock a trial is another trial."""

    @abstractmethod
    def state(self) -> EnvironmentState:
        """The current state; reads a few files and, if the environment is built, starts no process."""

    @abstractmethod
    def create(self, say: Say, *, rebuild: bool = False) -> None:
        """Build the environment; returns at once if it is ready, unless a rebuild is asked for.

        Raises:
            EnvironmentBuildError: it cannot be built; an earlier build is kept as it was.
        """

    @abstractmethod
    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs these arguments in the environment's interpreter."""

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """The environment variables that its interpreter needs, and no others."""

    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """What is installed now."""

    @abstractmethod
    def verify(self) -> None:
        """Check that exactly the packages of the lock are installed.

        Raises:
            EnvironmentBuildError: others are installed; the hint has the command that repairs it.
        """

    @abstractmethod
    def remove(self) -> None:
        """Delete what Paceline built; does nothing if there is nothing to delete."""
