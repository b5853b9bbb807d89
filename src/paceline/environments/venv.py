"""A virtual environment built from a pinned lock and kept in the user's cache; used only while it matches that lock.

Each lock has a folder of its own, `environments/<name>-<lock>`, so a changed lock never touches a working environment.
The marker is written last: a killed build leaves a folder without a marker, which the next build deletes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

from paceline.environments import cache
from paceline.environments.base import Environment, EnvironmentState, Fingerprint, Say
from paceline.environments.build import Build, difference
from paceline.environments.definition import Definition
from paceline.environments.installed import damaged_files, installed_packages, record_digests
from paceline.environments.installers import TOOLS, Tool
from paceline.environments.interpreters import (
    Interpreter,
    find_interpreter,
    missing_interpreter,
    search_path,
)
from paceline.errors import EnvironmentBuildError
from paceline.folders import cache_root
from paceline.units import format_bytes, format_seconds

MARKER = "paceline.json"


class _Marker(TypedDict):
    """Content of the marker of a finished build."""

    name: str
    lock: str
    python: str
    """Full version of the interpreter."""
    tool: Tool
    """The installer that built it."""
    size_bytes: int
    interpreter: dict[str, int]
    """Size and modification time of the interpreter's executable."""
    built: float
    """Unix time."""
    records: dict[str, str]
    """Distribution → digest of its RECORD."""


class PinnedEnvironment(Environment):
    """A virtual environment with exactly the distributions of its lock."""

    def __init__(
        self,
        definition: Definition,
        *,
        root: Path | None = None,
        tools: Sequence[Tool] = TOOLS,
        free_bytes: int | None = None,
    ) -> None:
        """Derive the paths; nothing is built or written.

        Args:
            definition: the packages and the Python of the environment.
            root: the cache; by default the user's.
            tools: installers to build with, tried in this order.
            free_bytes: free space to assume instead of the disk's.
        """
        self.definition = definition
        self.name = definition.name
        self._root = cache_root() if root is None else root
        self._home = self._root / "environments"
        self._lock_path = self._home / f"{self.name}.lock"
        self._tools = tuple(tools)
        self._free_bytes = free_bytes
        self._build_command = f"paceline env build {self.name}"
        self._lock = definition.lock
        self.folder = self._home / f"{self.name}-{self._lock}"
        self._python = self.folder / "bin" / "python"
        self._site = self.folder / "lib" / f"python{definition.python}" / "site-packages"

    @property
    def lock(self) -> str:
        return self._lock

    def state(self) -> EnvironmentState:
        marker = _read_marker(self.folder)
        if marker is not None:
            version = installed_packages([self._site]).get(self.definition.package)
            built_bytes = marker["size_bytes"]
            if wrong := self._wrong(marker):
                return EnvironmentState(
                    state="broken", version=version, reason=wrong, fix=self._build_command, size_bytes=built_bytes
                )
            return EnvironmentState(state="ready", version=version, size_bytes=built_bytes)
        pinned = self.definition.packages.get(self.definition.package)
        superseded = self._superseded()
        size = sum(marker["size_bytes"] for marker in map(_read_marker, superseded) if marker) or None
        if impossible := self._impossible(find_interpreter(self.definition.python)):
            reason, fix = impossible
            return EnvironmentState(state="unavailable", version=pinned, reason=reason, fix=fix, size_bytes=size)
        return EnvironmentState(
            state="stale" if superseded else "buildable",
            version=pinned,
            reason="its lock changed since it was built" if superseded else self._why_not_there(),
            fix=self._build_command,
            size_bytes=size,
        )

    def create(self, say: Say, *, rebuild: bool = False) -> None:
        waiting = f"{self.name}: another process is building it; waiting for that"
        with cache.exclusive(self._lock_path, say, waiting) as descriptor:
            if not rebuild and self._is_sound():
                return
            interpreter = find_interpreter(self.definition.python)
            impossible = self._impossible(interpreter)
            if impossible or interpreter is None:
                reason, fix = impossible or missing_interpreter(self.definition.python)
                raise EnvironmentBuildError(f"environment {self.name}: {reason}", hint=fix)
            try:
                cache.sweep(self._home, self.name)
                with _set_aside(self.folder):
                    self._build(interpreter, descriptor, say)
            except OSError as error:
                raise EnvironmentBuildError(
                    f"environment {self.name}: {error.strerror}: {error.filename}", hint=cache.MOVE_HINT
                ) from None
            for folder in self._superseded():
                if not cache.users_of(folder):
                    cache.remove_tree(folder)

    def command(self, argv: Sequence[str]) -> list[str]:
        return [str(self._python), *argv]

    def variables(self) -> dict[str, str]:
        return {"PATH": search_path(self.folder / "bin"), "PYTHONNOUSERSITE": "1"}

    def fingerprint(self) -> Fingerprint:
        marker = _read_marker(self.folder)
        return {
            "name": self.name,
            "lock": self.lock,
            "python": marker["python"] if marker else None,
            "packages": installed_packages([self._site]),
        }

    def verify(self) -> None:
        marker = _read_marker(self.folder)
        if marker is None:
            state = self.state()
            raise EnvironmentBuildError(f"environment {self.name}: {state.reason}", hint=state.fix)
        if wrong := self._wrong(marker) or self._damage():
            raise EnvironmentBuildError(
                f"environment {self.name}: {wrong}", hint=f"build it again: {self._build_command}"
            )

    def remove(self) -> None:
        with cache.exclusive(self._lock_path):
            folders = [self.folder, *self._superseded()]
            for folder in folders:
                if pids := cache.users_of(folder):
                    raise EnvironmentBuildError(
                        f"environment {self.name}: in use by process {pids[0]}",
                        hint="wait until that run has ended",
                    )
            for folder in folders:
                cache.remove_tree(folder)
            cache.sweep(self._home, self.name)
            others = [path for path in self._home.glob("*.lock") if path != self._lock_path]
            # uv links files from its downloads, so space is freed only if both are deleted.
            if not any(cache.is_locked(path) for path in others):
                cache.remove_tree(self._root / "downloads")

    def _superseded(self) -> list[Path]:
        """Folders of finished builds of the same name with other locks."""
        same_name = self._home.glob(f"{self.name}-{'?' * len(self.lock)}")
        return sorted(path for path in same_name if path != self.folder and (path / MARKER).is_file())

    def _why_not_there(self) -> str:
        if cache.is_locked(self._lock_path):
            return "is being built by another process"
        return "an earlier build did not finish" if self.folder.exists() else "not built yet"

    def _impossible(self, interpreter: Interpreter | None) -> tuple[str, str] | None:
        """The reason and the fix, if the environment cannot be built on this machine at all."""
        if self.definition.package not in self.definition.packages:
            return f"its lock has no {self.definition.package} for {sys.platform}", "paceline doctor"
        if interpreter is None:
            return missing_interpreter(self.definition.python)
        if lack := cache.lack_of_space(self.definition.disk_bytes, self._home, self._free_bytes):
            return lack, cache.MOVE_HINT
        return None

    def _wrong(self, marker: _Marker) -> str | None:
        """How the folder differs from its lock or its build, in words; reads only folder names and RECORD files."""
        if not self._python.exists():
            return f"its Python {marker['python']} is gone"
        if _stamp(self._python) != marker["interpreter"]:
            return f"its Python {marker['python']} was replaced since it was built"
        installed = installed_packages([self._site])
        if forbidden := sorted(name for name in installed if self.definition.forbids(name)):
            return f"has {', '.join(forbidden)}, which must not be there"
        if different := difference(self.definition.packages, installed):
            return different
        records = record_digests(self._site)
        if changed := sorted(name for name in records if records[name] != marker["records"].get(name)):
            return f"{', '.join(changed)} changed since it was built"
        return None

    def _damage(self) -> str | None:
        damaged = damaged_files(self._site)
        return f"{len(damaged)} file(s) missing or damaged, e.g. {damaged[0]}" if damaged else None

    def _is_sound(self) -> bool:
        marker = _read_marker(self.folder)
        return marker is not None and not self._wrong(marker) and not self._damage()

    def _build(self, interpreter: Interpreter, descriptor: int, say: Say) -> None:
        began = time.monotonic()
        build = Build(
            definition=self.definition,
            interpreter=interpreter,
            tools=self._tools,
            folder=self.folder,
            downloads=self._root / "downloads",
            scratch=self._home / f".{self.name}.scratch",
            lock_descriptor=descriptor,
            say=say,
        )
        build.scratch.mkdir(parents=True)
        try:
            build.downloads.mkdir(exist_ok=True)
            tool = build.fill()
            build.check(installed_packages([self._site]), self.command([]), self.variables())
            size = cache.tree_bytes(self.folder)
            marker: _Marker = {
                "name": self.name,
                "lock": self.lock,
                "python": interpreter.version,
                "tool": tool,
                "size_bytes": size,
                "interpreter": _stamp(self._python),
                "built": time.time(),
                "records": record_digests(self._site),
            }
            _write_last(self.folder / MARKER, json.dumps(marker, indent=1))
        finally:
            shutil.rmtree(build.scratch, ignore_errors=True)
        took = format_seconds(time.monotonic() - began)
        say(f"{self.name}: ready, {format_bytes(size)}, {took} with {tool}")


@contextmanager
def _set_aside(folder: Path) -> Iterator[None]:
    """Move a finished folder aside while another is built in its place; restore it if the build fails."""
    aside = folder.with_name(f".{folder.name}.aside")
    if (folder / MARKER).is_file():
        folder.rename(aside)
    try:
        yield
    except BaseException:
        cache.remove_tree(folder)
        if aside.exists():
            aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _stamp(path: Path) -> dict[str, int]:
    """Size and modification time, which tell whether an executable was replaced without starting it."""
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _read_marker(folder: Path) -> _Marker | None:
    try:
        marker: _Marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return marker


def _write_last(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
