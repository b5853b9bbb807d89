"""Find a Python of a given version on this machine and verify it by starting it. This module installs no Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROBE_TIMEOUT_S = 20.0
"""A Python that needs longer than this to report its version is not usable."""

_PROBE = """
import json, sys
print(json.dumps({
    "path": getattr(sys, "_base_executable", None) or sys.executable,
    "version": ".".join(map(str, sys.version_info[:3])),
    "search": [p for p in sys.path if p],
}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """A Python that was started and reported its version."""

    path: Path
    """The real executable, behind shims and virtual environments."""
    version: str
    """Full version, e.g. 3.11.7."""
    search: tuple[Path, ...]
    """Its module search path."""

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


def probe(executable: str | Path, *, environ: Mapping[str, str] | None = None) -> Interpreter | None:
    """Start a Python and read its path, version and search path; None if it does not answer."""
    env = dict(os.environ if environ is None else environ)
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "__PYVENV_LAUNCHER__"):
        env.pop(name, None)
    env["PYTHONNOUSERSITE"] = "1"
    try:
        # Not -I: the interpreter is started as it will be used, except for the variables above.
        answer = subprocess.run(
            [str(executable), "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            env=env,
            check=False,
            cwd="/",
            stdin=subprocess.DEVNULL,
        )
        data = json.loads(answer.stdout.strip().splitlines()[-1]) if answer.returncode == 0 else None
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
    if data is None:
        return None
    return Interpreter(path=Path(data["path"]), version=data["version"], search=tuple(map(Path, data["search"])))


def find_interpreter(version: str, environ: Mapping[str, str] | None = None) -> Interpreter | None:
    """The first Python of this major.minor version that answers, or None.

    The search covers the running Python, PATH, the versions of pyenv and the Pythons that uv finds. Results are cached
    for the process if the variables are those of the process.
    """
    return _find_here(version) if environ is None else _find(version, environ)


def missing_interpreter(version: str) -> tuple[str, str]:
    """The reason and the fix for a Python that is not installed."""
    how = f"pyenv install {version}   or: uv python install {version}"
    return f"no Python {version} on this machine (looked at PATH, pyenv and uv)", how


def find_uv(environ: Mapping[str, str] | None = None) -> Path | None:
    """The uv program, from the host's own environment or from PATH."""
    beside = Path(sysconfig.get_path("scripts")) / "uv"
    if environ is None and beside.is_file():
        return beside
    program = shutil.which("uv", path=(os.environ if environ is None else environ).get("PATH"))
    return Path(program) if program else None


def search_path(first: Path) -> str:
    """PATH with one folder in front and without the host's own virtual environment."""
    host_folders = {f"{prefix}/bin" for prefix in (os.environ.get("VIRTUAL_ENV"), sys.prefix) if prefix}
    if sys.prefix == sys.base_prefix:
        host_folders.discard(f"{sys.prefix}/bin")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    inherited = [folder for folder in folders if folder and folder not in host_folders]
    return os.pathsep.join([str(first), *inherited])


@cache
def _find_here(version: str) -> Interpreter | None:
    return _find(version, os.environ)


def _find(version: str, environ: Mapping[str, str]) -> Interpreter | None:
    seen = set()
    for candidate in _candidates(version, environ):
        if candidate in seen:
            continue
        seen.add(candidate)
        interpreter = probe(candidate, environ=environ)
        if interpreter and interpreter.minor == version:
            return interpreter
    return None


def _candidates(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        yield Path(sys.executable)
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder and (path := Path(folder) / f"python{version}").is_file():
            yield path
    for root in _pyenv_roots(environ):
        versions = [path for path in root.glob(f"versions/{version}*") if re.fullmatch(r"[\d.]+", path.name)]
        for path in sorted(versions, key=lambda path: [int(part) for part in path.name.split(".")], reverse=True):
            if (executable := path / "bin" / f"python{version}").is_file():
                yield executable
    if uv := find_uv(None if environ is os.environ else environ):
        yield from _known_to_uv(uv, version, environ)


def _pyenv_roots(environ: Mapping[str, str]) -> Iterator[Path]:
    if root := environ.get("PYENV_ROOT"):
        yield Path(root)
    if home := environ.get("HOME"):
        yield Path(home) / ".pyenv"
    if program := shutil.which("pyenv", path=environ.get("PATH", "")):
        yield Path(program).resolve().parent.parent


def _known_to_uv(uv: Path, version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    try:
        answer = subprocess.run(
            [str(uv), "python", "find", "--no-python-downloads", "--no-project", "--system", version],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            env=dict(environ),
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return
    if answer.returncode == 0 and answer.stdout.strip():
        yield Path(answer.stdout.strip())
