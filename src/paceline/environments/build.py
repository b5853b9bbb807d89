"""One build: install a lock into a folder and make sure that it is there and works."""

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
    """What it should be."""
    interpreter: Interpreter
    """Its Python."""
    tools: tuple[Tool, ...]
    """Tried in this order."""
    folder: Path
    """Where it will live; whatever is there is deleted."""
    downloads: Path
    """What installers fetched, shared by all environments."""
    scratch: Path
    """For temporary files; the caller deletes it."""
    lock_descriptor: int
    """Inherited by all that is started, so that the lock is held as long as one of them lives."""
    say: Say
    """Takes progress lines."""

    def fill(self) -> Tool:
        """Install the lock; the tool that could.

        Each tool in turn, with pip's own configuration first, then with the definition's extra indexes.

        Raises:
            EnvironmentBuildError: none could, with the last lines of the last attempt.
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
        """Make sure that what was installed is the lock, and that it imports.

        Raises:
            EnvironmentBuildError: it is something else, or does not import.
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


def difference(wanted: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """How what was found differs from what was wanted, in words, or None."""
    missing = [f"{name} {wanted[name]}" for name in wanted if name not in found]
    other = [f"{n} {found[n]} instead of {wanted[n]}" for n in wanted if n in found and found[n] != wanted[n]]
    surplus = [f"{name} {found[name]}" for name in found if name not in wanted]
    parts = [("missing", missing), ("wrong", other), ("not in its lock", surplus)]
    return "; ".join(f"{word}: {', '.join(sorted(items))}" for word, items in parts if items) or None
