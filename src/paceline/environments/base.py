"""What an environment is: somewhere a framework is installed. Knows nothing of what is measured in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Say = Callable[[str], None]
"""Takes one line of progress for people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentState:
    """Whether an environment can be used, and if not: why, and what to type."""

    state: Literal["ready", "buildable", "unavailable", "stale", "broken"]
    """stale: built from another lock; broken: not what its lock says; `create` turns both into ready."""
    version: str | None = None
    """Of the main package: as installed, or as it would be."""
    reason: str | None = None
    """Why it is not ready, in words."""
    fix: str | None = None
    """The command that helps."""
    size_bytes: int | None = None
    """What it takes on disk; None when nothing is there or it is not ours."""

    @property
    def usable(self) -> bool:
        """Ready, or `create` can be expected to make it so."""
        return self.state != "unavailable"


class Environment(ABC):
    """Somewhere a framework is installed."""

    name: str
    """Id, as `paceline env` shows it; a path for the user's own interpreter."""

    @property
    @abstractmethod
    def lock(self) -> str:
        """Digest of what should be installed; a changed lock is another trial."""

    @abstractmethod
    def state(self) -> EnvironmentState:
        """How it stands; reads a few files and starts no process when the environment is there."""

    @abstractmethod
    def create(self, say: Say, *, rebuild: bool = False) -> None:
        """Make it ready; returns at once when it is, unless a rebuild is asked for.

        Raises:
            EnvironmentBuildError: it cannot be made; what was there before is still there.
        """

    @abstractmethod
    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs these arguments in the environment's interpreter."""

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """The variables its interpreter needs, and no others."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """name, lock, python and packages {name: version} as they are installed now."""

    @abstractmethod
    def verify(self) -> None:
        """Check that what is installed is what the lock says.

        Raises:
            EnvironmentBuildError: it is not, with the command that repairs it.
        """

    @abstractmethod
    def remove(self) -> None:
        """Free what it takes on disk; nothing happens when there is nothing of ours."""
