"""Where frameworks are installed: pinned environments, defined as data, and interpreters that already exist.

Pins are read from the wheel (`pins` beside this file) or from a checkout (`environments/` at its top), and from the
folders in PACELINE_ENVIRONMENTS. Those folders take precedence, so that a user can pin other versions than the shipped
ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from paceline.environments.base import Environment, EnvironmentState, Say
from paceline.environments.definition import FILE_NAME, Definition, read_definition
from paceline.environments.examine import examined, usable_cache
from paceline.environments.existing import ExistingInterpreter, HostInterpreter
from paceline.environments.venv import PinnedEnvironment
from paceline.errors import SpecError, did_you_mean
from paceline.folders import cache_root

__all__ = [
    "Definition",
    "Environment",
    "EnvironmentState",
    "ExistingInterpreter",
    "HostInterpreter",
    "PinnedEnvironment",
    "Say",
    "cache_root",
    "examined",
    "known_environments",
    "load_environment",
    "read_definition",
    "usable_cache",
]

_IN_WHEEL = Path(__file__).parent / "pins"
_IN_CHECKOUT = Path(__file__).parents[3] / "environments"


def known_environments(environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Name → folder of its pins."""
    env = os.environ if environ is None else environ
    places = [_IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT]
    places += [Path(place).expanduser() for place in env.get("PACELINE_ENVIRONMENTS", "").split(os.pathsep) if place]
    return {file.parent.name: file.parent for place in places for file in sorted(place.glob(f"*/{FILE_NAME}"))}


def load_environment(name: str, where: str = "environment") -> Environment:
    """A pinned environment by name.

    Raises:
        SpecError: there is none of that name, or its files do not fit.
    """
    environments = known_environments()
    if name not in environments:
        raise SpecError(
            f"{where}: unknown environment '{name}'",
            hint=f"{did_you_mean(name, environments)}   list them: paceline env list",
        )
    return PinnedEnvironment(read_definition(environments[name]))
