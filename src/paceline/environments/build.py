"""One build: install a lock into a folder and check that the packages are there and can be imported."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.environments.base import Say
from paceline.environments.definition import Definition
from paceline.environments.failures import explain_failure
from paceline.environments.indexes import pip_indexes
from paceline.environments.installers import (
    Installation,
    InstallError,
    Tool,
    available_tools,
    install,
    run_for_lines,
)
from paceline.environments.interpreters import Interpreter
from paceline.errors import EnvironmentBuildError


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """What to build, where and with what."""

    definition: Definition
    """The environment to build."""
    interpreter: Interpreter
    """The Python of the environment."""
    tools: tuple[Tool, ...]
    """Installers, tried in this order."""
    folder: Path
    """The folder of the environment; its present content is deleted."""
    downloads: Path
    """Cache of downloaded packages, shared by all environments."""
    scratch: Path
    """Folder for temporary files; the caller deletes it."""
    lock_descriptor: int
    """Inherited by every started process, so that the lock is held as long as one of them lives."""
    say: Say
    """Receives progress messages."""

    def fill(self) -> Tool:
        """Install the lock and return the tool that succeeded.

        Each tool is tried in turn, first with pip's own configuration, then with the definition's extra indexes.

        Raises:
            EnvironmentBuildError: no tool succeeded; the message has the last lines of the last attempt.
        """
        name = self.definition.name
        failure: InstallError | None = None
        for tool in available_tools(self.tools):
            if failure:
                self.say(f"{name}: {failure.tool} could not build it; trying {tool}")
            for extra in dict.fromkeys([(), self.definition.extra_indexes]):
                asking = ", asking the framework's public index too" if extra else ""
                self.say(f"{name}: building with {tool}, Python {self.interpreter.version}{asking}")
                try:
                    self._attempt(tool, extra)
                except InstallError as error:
                    failure = error
                else:
                    return tool
        raise explain_failure(self.definition, failure.tool if failure else "", failure.tail if failure else ())

    def check(self, packages: Mapping[str, str], command: Sequence[str], variables: Mapping[str, str]) -> None:
        """Check that the installed packages are those of the lock, and that the main modules can be imported.

        Raises:
            EnvironmentBuildError: other packages are installed, or a module cannot be imported.
        """
        if different := difference(self.definition.packages, packages):
            raise EnvironmentBuildError(
                f"environment {self.definition.name}: what was installed is not its lock: {different}",
                hint="correct the versions in its lock",
            )
        program = "; ".join(f"import {module}" for module in self.definition.imports)
        tail = run_for_lines([*command, "-c", program], variables, self.scratch, self.lock_descriptor, self.say)
        if tail is not None:
            raise explain_failure(self.definition, "import", tail)

    def _attempt(self, tool: Tool, extra_indexes: tuple[str, ...]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        packages = self.definition.packages
        requirements = self.scratch / "requirements.txt"
        requirements.write_text("".join(f"{name}=={version}\n" for name, version in packages.items()))
        install(
            tool,
            Installation(
                folder=self.folder,
                interpreter=self.interpreter,
                requirements=requirements,
                names=frozenset(packages),
                indexes=pip_indexes(self.interpreter.path),
                extra_indexes=extra_indexes,
                from_source=self.definition.from_source,
                downloads=self.downloads,
                scratch=self.scratch,
                lock_descriptor=self.lock_descriptor,
                say=self.say,
            ),
        )


def difference(pinned: Mapping[str, str], installed: Mapping[str, str]) -> str | None:
    """How the installed packages differ from the pinned ones, in words, or None."""
    missing = [f"{name} {pinned[name]}" for name in pinned if name not in installed]
    wrong = [
        f"{name} {installed[name]} instead of {version}"
        for name, version in pinned.items()
        if name in installed and installed[name] != version
    ]
    surplus = [f"{name} {installed[name]}" for name in installed if name not in pinned]
    parts = [("missing", missing), ("wrong", wrong), ("not in its lock", surplus)]
    return "; ".join(f"{word}: {', '.join(sorted(items))}" for word, items in parts if items) or None
