"""Interpreters that already exist and are not changed: the user's own, and the one that runs Paceline."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from paceline.environments.base import Environment, EnvironmentState, Fingerprint, Say
from paceline.environments.installed import installed_packages
from paceline.environments.interpreters import probe, search_path
from paceline.environments.lock import normalized
from paceline.errors import EnvironmentBuildError, SpecError


class ExistingInterpreter(Environment):
    """The user's own interpreter. Its lock is a digest of its packages: a new package makes it another environment."""

    def __init__(self, path: str | Path, *, package: str | None = None, where: str = "framework.interpreter") -> None:
        """Start the interpreter once, to learn its version and search path.

        Args:
            path: the executable.
            package: the distribution whose version is shown.
            where: key to name in errors.

        Raises:
            SpecError: the path is not a working Python.
        """
        # Links are not resolved: the link of a virtual environment points to a Python without its packages.
        self._path = Path(path).expanduser().absolute()
        self.name = str(self._path)
        interpreter = probe(self._path) if _can_start(self._path) else None
        if interpreter is None:
            raise SpecError(
                f"{where}: '{path}' is not a Python that starts",
                hint=f"try it: {path} -c 'import sys'   or leave it out",
            )
        self._python = interpreter.version
        self._folders = interpreter.search
        self._package = normalized(package) if package else None
        self._lock = self._digest()

    @property
    def lock(self) -> str:
        return self._lock

    def state(self) -> EnvironmentState:
        packages = installed_packages(self._folders)
        version = packages.get(self._package) if self._package else None
        if self._package and version is None:
            return EnvironmentState(
                state="unavailable",
                reason=f"{self.name} has no {self._package}",
                fix=f"{self.name} -m pip install {self._package}",
            )
        return EnvironmentState(state="ready", version=version)

    def create(self, say: Say, *, rebuild: bool = False) -> None:  # noqa: ARG002  it is the user's: nothing to make
        state = self.state()
        if state.state != "ready":
            raise EnvironmentBuildError(state.reason or "", hint=state.fix)

    def command(self, argv: Sequence[str]) -> list[str]:
        return [self.name, *argv]

    def variables(self) -> dict[str, str]:
        return {"PATH": search_path(self._path.parent), "PYTHONNOUSERSITE": "1"}

    def fingerprint(self) -> Fingerprint:
        return {
            "name": self.name,
            "lock": self.lock,
            "python": self._python,
            "packages": installed_packages(self._folders),
        }

    def verify(self) -> None:
        if not self._path.exists():
            raise EnvironmentBuildError(f"{self.name} is gone", hint="choose another: framework.interpreter")
        if self._digest() != self._lock:
            raise EnvironmentBuildError(
                f"{self.name}: its packages changed since the study was planned",
                hint="start again: paceline run STUDY",
            )

    def remove(self) -> None:
        """Does nothing: the interpreter is the user's, and Paceline built nothing in it."""

    def _digest(self) -> str:
        content = json.dumps([self._python, installed_packages(self._folders)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class HostInterpreter(Environment):
    """The interpreter that runs Paceline, for workers that need only the standard library.

    Its packages are not part of its lock: these workers import none, and a new package in the host's own environment
    must not turn the recorded trials into other trials.
    """

    name = "host"

    @property
    def lock(self) -> str:
        return f"host-{sys.version_info.major}.{sys.version_info.minor}"

    def state(self) -> EnvironmentState:
        return EnvironmentState(state="ready", version=platform.python_version())

    def create(self, say: Say, *, rebuild: bool = False) -> None:
        """Does nothing: the interpreter exists, since it runs this code."""

    def command(self, argv: Sequence[str]) -> list[str]:
        return [sys.executable, *argv]

    def variables(self) -> dict[str, str]:
        return {"PATH": search_path(Path(sys.executable).parent), "PYTHONNOUSERSITE": "1"}

    def fingerprint(self) -> Fingerprint:
        return {"name": self.name, "lock": self.lock, "python": platform.python_version(), "packages": {}}

    def verify(self) -> None:
        """Does nothing: the interpreter cannot have changed while this process runs in it."""

    def remove(self) -> None:
        """Does nothing: the interpreter cannot be removed while it runs this code."""


def _can_start(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except OSError:  # a name that no file system takes
        return False
