"""The two programs that make a virtual environment and fill it with a lock: uv, and venv with pip.

uv is tried first where it is installed: measured on two cores, it builds the PyTorch environment in 33 s, venv and pip
in 72 s. pip is the second attempt, because it supports keyrings, proxies and Pythons that uv does not.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from paceline.environments.base import Say
from paceline.environments.indexes import Indexes, redacted
from paceline.environments.interpreters import Interpreter, find_uv
from paceline.environments.lock import normalized

Tool = Literal["uv", "pip"]
TOOLS: tuple[Tool, ...] = ("uv", "pip")
"""The installers, in the order in which they are tried."""
TAIL_LINES = 15
"""Last output lines to keep: enough for the final messages of pip and uv."""
OLDEST_PIP = (20, 3)
"""Older versions of pip do not know the platform tags of today's wheels; Python 3.6 comes with pip 18."""

_PROGRESS = (
    "Collecting ",
    "Downloading ",
    "Installing ",
    "Resolved ",
    "Prepared ",
    "Installed ",
    "Bytecode ",
)
_NOT_OURS = {
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_REQUIREMENT",
    "PIP_EDITABLE",
    "PIP_DRY_RUN",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_NO_BINARY",
    "PIP_ONLY_BINARY",
    "PIP_PYTHON",
    "PIP_QUIET",
    "PIP_NO_COMPILE",
    "UV_SYSTEM_PYTHON",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
    "UV_QUIET",
    "UV_NO_BINARY",
}
"""Settings of the user's shell that would make an installer work on something else."""


class InstallError(Exception):
    """An installer failed; the error holds its last output lines, without addresses."""

    def __init__(self, tool: Tool, tail: Sequence[str]) -> None:
        super().__init__(f"{tool} gave up")
        self.tool = tool
        self.tail = tuple(tail)


@dataclass(frozen=True, kw_only=True, slots=True)
class Installation:
    """One virtual environment to be created."""

    folder: Path
    """Its folder; created by the installer at its final place, since virtual environments cannot be moved."""
    interpreter: Interpreter
    """The Python of the environment."""
    requirements: Path
    """A file that pins every distribution."""
    names: frozenset[str]
    """Normalized names of all distributions that belong to the environment."""
    indexes: Indexes
    """Where packages come from."""
    extra_indexes: tuple[str, ...]
    """Further indexes to use."""
    from_source: tuple[str, ...]
    """Distributions that may be built from source."""
    downloads: Path
    """Cache of downloads; shared by all environments, so that no package is downloaded twice."""
    scratch: Path
    """Folder for temporary files; deleted after the build."""
    lock_descriptor: int
    """The lock of the build, which installers inherit so that it is held as long as they live."""
    say: Say
    """Receives progress messages."""

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


def available_tools(tools: Iterable[Tool] = TOOLS) -> list[Tool]:
    """Those of the tools that this machine has; pip comes with Python."""
    return [tool for tool in tools if tool != "uv" or find_uv()]


def install(tool: Tool, what: Installation) -> None:
    """Create one virtual environment and install its packages.

    Raises:
        InstallError: the tool failed; the content of the folder is unusable.
    """
    if tool == "uv":
        _install_with_uv(what)
    else:
        _install_with_pip(what)


def _install_with_uv(what: Installation) -> None:
    uv = str(find_uv())
    env = what.indexes.for_uv(what.extra_indexes)
    env |= {"NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    env["UV_CACHE_DIR"] = os.environ.get("UV_CACHE_DIR") or str(what.downloads / "uv")
    _run(
        "uv",
        [uv, "venv", "--no-project", "--python", str(what.interpreter.path), str(what.folder)],
        env,
        what,
    )
    argv = [uv, "pip", "install", "--python", str(what.python), "--no-deps", "--compile-bytecode"]
    argv += ["--no-build"] if not what.from_source else _only_binary(what)
    argv += ["--no-index"] if what.indexes.no_index else []
    _run("uv", [*argv, "-r", str(what.requirements)], env, what)


def _install_with_pip(what: Installation) -> None:
    env = what.indexes.for_pip(what.extra_indexes)
    env |= {
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_PROGRESS_BAR": "off",
        "NO_COLOR": "1",
    }
    env["PIP_CACHE_DIR"] = os.environ.get("PIP_CACHE_DIR") or str(what.downloads / "pip")
    _run("pip", [str(what.interpreter.path), "-m", "venv", str(what.folder)], env, what)
    pip = [str(what.python), "-m", "pip"]
    if _pip_version(what.folder) < OLDEST_PIP:
        _run("pip", [*pip, "install", "--upgrade", "pip"], env, what)
    _run("pip", [*pip, "install", "--no-deps", *_only_binary(what), "-r", str(what.requirements)], env, what)
    # The lock is complete, so packages that venv itself installed are removed, pip included.
    surplus = sorted({"pip", "setuptools", "wheel"} - what.names)
    if surplus:
        _run("pip", [*pip, "uninstall", "--yes", *surplus], env, what)


def _only_binary(what: Installation) -> list[str]:
    argv = ["--only-binary", ":all:"]
    for name in what.from_source:
        argv += ["--no-binary", name]
    return argv


def _pip_version(folder: Path) -> tuple[int, ...]:
    for path in folder.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = path.name.removesuffix(".dist-info").partition("-")
        if normalized(name) == "pip":
            return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    return (0,)


def _run(tool: Tool, argv: Sequence[str], settings: Mapping[str, str], what: Installation) -> None:
    env = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    env.update(settings)
    # pip unpacks into the temporary folder, which is often a small disk in memory.
    env["TMPDIR"] = str(what.scratch)
    last = run_for_lines(argv, env, what.scratch, what.lock_descriptor, what.say)
    if last is not None:
        raise InstallError(tool, last)


def run_for_lines(
    argv: Sequence[str], env: Mapping[str, str], folder: Path, descriptor: int, say: Say
) -> list[str] | None:
    """Run a program and report its progress; returns None on success, else its last lines, without addresses."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    try:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=(descriptor,),
            start_new_session=True,
        )
    except OSError as error:
        return [f"{argv[0]}: {error.strerror}"]
    with process:
        try:
            for raw in process.stdout or ():
                line = redacted(raw.rstrip())
                if not line.strip():
                    continue
                tail.append(line)
                if line.strip().startswith(_PROGRESS):
                    say(f"  {line.strip()}")
        except BaseException:
            # Ctrl-C does not reach the program, because it runs in its own session.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return None if process.returncode == 0 else list(tail)
