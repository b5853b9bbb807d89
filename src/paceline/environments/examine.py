"""Whether an environment has the packages of its lock, and where environments are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paceline.environments.base import Environment, EnvironmentState
from paceline.errors import EnvironmentBuildError
from paceline.folders import cache_root


def examined(environment: Environment) -> EnvironmentState:
    """The state of an environment; one that claims to be ready is verified file by file."""
    state = environment.state()
    if state.state != "ready":
        return state
    try:
        environment.verify()
    except EnvironmentBuildError as error:
        return replace(state, state="broken", reason=error.message, fix=error.hint)
    return state


def usable_cache() -> Path:
    """The cache folder, created if it does not exist.

    Raises:
        EnvironmentBuildError: it cannot be created.
    """
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentBuildError(
            f"{root}: the cache cannot be made: {error.strerror}",
            hint="choose another: export PACELINE_CACHE=/some/folder",
        ) from None
    return root
