"""Locks: a text that pins every distribution, one per line, as `name==version ; marker`, and its digest.

A lock is installed without resolving dependencies, so it must name all of them; in return, nothing is installed that it
does not name. Markers select platforms and nothing else: the environment defines the version of Python.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from paceline.errors import SpecError

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*([A-Za-z0-9][A-Za-z0-9.!+_-]*)\s*(?:;\s*(.+?))?\s*$")
_CLAUSE = re.compile(r"""^(\w+)\s*(==|!=)\s*(['"])([^'"]*)\3$""")
_HINT = "write name==version, with ; sys_platform == 'linux' where platforms differ"


def normalized(name: str) -> str:
    """A distribution's name as indexes compare it: lower case, one dash for any run of - _ and ."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """One line of a lock."""

    name: str
    """Normalized name of the distribution."""
    version: str
    """The one version that fits, local part included."""
    marker: str | None = None
    """On which platforms; None: all."""

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"

    def applies(self, values: dict[str, str]) -> bool:
        """Whether the line counts on a platform with these marker values."""
        if self.marker is None:
            return True
        matches = (_CLAUSE.match(clause.strip()) for clause in self.marker.split(" and "))
        return all((values[m[1]] == m[4]) == (m[2] == "==") for m in matches if m)


def marker_values() -> dict[str, str]:
    """Variable of a marker → its value on this machine."""
    return {
        "sys_platform": sys.platform,
        "platform_machine": platform.machine(),
        "platform_system": platform.system(),
    }


def parse_lock(text: str, where: str) -> tuple[Pin, ...]:
    """Read a lock.

    Raises:
        SpecError: a line that pins nothing, a marker that is not understood, or a distribution pinned twice
            for one platform.
    """
    pins: list[Pin] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        if not line:
            continue
        match = _PIN.match(line)
        if not match:
            raise SpecError(f"{where}:{number}: {line!r} is not a pin", hint=_HINT)
        marker = " ".join(match[3].split()) if match[3] else None
        _check_marker(marker, f"{where}:{number}")
        pins.append(Pin(name=normalized(match[1]), version=match[2], marker=marker))
    here = [pin.name for pin in pins if pin.applies(marker_values())]
    if twice := sorted({name for name in here if here.count(name) > 1}):
        raise SpecError(f"{where}: '{twice[0]}' is pinned twice", hint="keep one line for each platform")
    return tuple(pins)


def lock_digest(pins: Iterable[Pin], python: str) -> str:
    """Changes with any pin or the Python version; comments, order and platform change nothing."""
    lines = sorted(f"{pin.requirement} ; {pin.marker or ''}" for pin in pins)
    return hashlib.sha256("\n".join([f"python {python}", *lines]).encode()).hexdigest()[:16]


def _check_marker(marker: str | None, where: str) -> None:
    for clause in marker.split(" and ") if marker else ():
        match = _CLAUSE.match(clause.strip())
        if not match or match[1] not in marker_values():
            raise SpecError(
                f"{where}: the marker {clause.strip()!r} is not understood",
                hint=f"compare one of {', '.join(marker_values())} with == or !=, joined by 'and'",
            )
