"""An environment as data: `environments/<name>/environment.toml` and the lock beside it. This module builds nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from paceline.environments.lock import Pin, lock_digest, marker_values, normalized, parse_lock
from paceline.errors import SpecError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "environment.toml"

_KEYS: dict[str, tuple[type, str]] = {
    "name": (str, "the folder's name"),
    "description": (str, "one line for people"),
    "python": (str, 'the Python version, e.g. "3.11"'),
    "package": (str, "the distribution whose version is the framework's"),
    "imports": (list, "modules that must import once it is built"),
    "lock": (str, "file name of the lock"),
    "disk_bytes": (int, "space that building needs"),
    "extra_indexes": (list, "indexes asked when pip's own configuration lacks the pins"),
    "forbidden": (list, "distributions, with * and ?, that must never be pulled in"),
    "from_source": (list, "distributions that have no wheels and may be built here"),
}
_OPTIONAL = {"imports", "extra_indexes", "forbidden", "from_source"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """Which packages and which Python an environment consists of."""

    name: str
    """Id; the name of its folder."""
    description: str
    """One line for people."""
    python: str
    """Major and minor version of its interpreter."""
    package: str
    """Normalized name of the main distribution."""
    pins: tuple[Pin, ...]
    """The whole lock, all platforms."""
    disk_bytes: int
    """Space that must be free before it is built."""
    imports: tuple[str, ...] = ()
    """Modules that must import once it is built."""
    extra_indexes: tuple[str, ...] = ()
    """Asked only when pip's own configuration does not have the pins."""
    forbidden: tuple[str, ...] = ()
    """Patterns of distributions that must never be there."""
    from_source: tuple[str, ...] = ()
    """Distributions that may be built from source; all others are installed from wheels or not at all."""

    @property
    def lock(self) -> str:
        return lock_digest(self.pins, self.python)

    @property
    def packages(self) -> dict[str, str]:
        """Name → version of every distribution that belongs to the environment on this platform."""
        values = marker_values()
        return {pin.name: pin.version for pin in self.pins if pin.applies(values)}

    def forbids(self, distribution: str) -> bool:
        return any(fnmatchcase(normalized(distribution), pattern) for pattern in self.forbidden)


def read_definition(folder: Path) -> Definition:
    """Read and check the files of one environment.

    Raises:
        SpecError: a file is missing or has a wrong value; the message names file, key and what is expected.
    """
    path = folder / FILE_NAME
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(
            f"{path}: not valid TOML: {error}", hint="write it like one that is there: paceline env list"
        ) from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}", hint="check the file and its rights") from None
    _check_keys(data, path)
    lock_path = folder / data["lock"]
    try:
        text = lock_path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{lock_path}: cannot be read: {error.strerror}", hint=f"named by 'lock' in {path}") from None
    definition = Definition(
        name=data["name"],
        description=data["description"],
        python=data["python"],
        package=normalized(data["package"]),
        pins=parse_lock(text, str(lock_path)),
        disk_bytes=data["disk_bytes"],
        **{key: tuple(data.get(key, ())) for key in _OPTIONAL},
    )
    _check_sense(definition, folder, path, lock_path)
    return definition


def _check_keys(data: Mapping[str, object], path: Path) -> None:
    for key in data:
        if key not in _KEYS:
            raise SpecError(f"{path}: unknown key '{key}'", hint=did_you_mean(key, _KEYS))
    for key, (kind, meaning) in _KEYS.items():
        if key not in data:
            if key not in _OPTIONAL:
                raise SpecError(f"{path}: '{key}' is missing", hint=f"add it: {meaning}")
            continue
        value = data[key]
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if not fits or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
            raise SpecError(f"{path}: {key}: {value!r} does not fit", hint=f"it is {meaning}")


def _check_sense(definition: Definition, folder: Path, path: Path, lock_path: Path) -> None:
    if definition.name != folder.name:
        raise SpecError(f"{path}: name: '{definition.name}' is not the folder's", hint=f'name = "{folder.name}"')
    if len(parts := definition.python.split(".")) != 2 or not all(part.isdigit() for part in parts):
        raise SpecError(f"{path}: python: {definition.python!r} does not fit", hint='major.minor, e.g. "3.11"')
    named = {pin.name for pin in definition.pins}
    if definition.package not in named:
        raise SpecError(f"{lock_path}: does not pin '{definition.package}'", hint=f"the main package of {path}")
    if wrong := sorted(name for name in named if definition.forbids(name)):
        raise SpecError(
            f"{lock_path}: pins '{wrong[0]}', which {path.name} forbids", hint="take it out of one of the two"
        )
