"""Turns the last output lines of a failed installer into an error with a fix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paceline.environments.cache import MOVE_HINT
from paceline.environments.definition import Definition
from paceline.errors import EnvironmentBuildError

_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_NO_ENSUREPIP = re.compile(r"ensurepip is not available|No module named '?(ensurepip|venv)", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"NewConnectionError|Max retries exceeded|Temporary failure in name resolution|dns error|timed out|"
    r"Failed to fetch|error sending request|ConnectionResetError|ProxyError|SSLError|certificate",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(
    r"No matching distribution|Could not find a version|No solution found|was not found in|no version of|"
    r"has no wheels with a matching|no usable wheels",
    re.IGNORECASE,
)


def explain_failure(definition: Definition, tool: str, tail: Sequence[str]) -> EnvironmentBuildError:
    """The error of a failed build, with the last output lines of the tool and a matching fix."""
    text = "\n".join(tail)
    build = f"paceline env build {definition.name}"
    if tool == "import":
        what, fix = (
            "was installed but does not work",
            f"see the lines above for what is missing, then: {build}",
        )
    elif not tool:
        what, fix = "there is nothing to build it with", "pip install uv"
    elif _NO_SPACE.search(text):
        what, fix = "the disk is full", MOVE_HINT
    elif _NO_ENSUREPIP.search(text):
        what = f"Python {definition.python} here cannot make virtual environments"
        fix = f"pip install uv   or: apt install python{definition.python}-venv   then: {build}"
    elif _NOT_FOUND.search(text):
        what, fix = _not_found(definition, build)
    elif _NO_NETWORK.search(text):
        what, fix = (
            "the package index cannot be reached",
            f"check the network and pip's settings, then: {build}",
        )
    else:
        what, fix = f"{tool} could not build it", f"see the lines above, then: {build}"
    lines = "".join(f"\n    {line}" for line in tail)
    return EnvironmentBuildError(f"environment {definition.name}: {what}{lines}", hint=fix)


def _not_found(definition: Definition, build: str) -> tuple[str, str]:
    pin = f"{definition.package}=={definition.packages[definition.package]}"
    what = f"a pinned version is not on any index that pip is configured for (main package: {pin})"
    if definition.forbidden:
        what += "; another build (CUDA) was not taken instead"
    fix = f"give pip an index that has it: pip config set global.extra-index-url URL   then: {build}"
    return what, fix
