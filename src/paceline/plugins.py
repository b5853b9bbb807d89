"""Plug-ins by name: a literal dict first, entry points of installed packages second. They are loaded on first use.

This module imports only `errors`. The families (`frameworks`, `sites`) have separate dicts and do not import each
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from paceline.errors import SpecError, did_you_mean


def known_plugins(group: str, ours: Mapping[str, str]) -> dict[str, str]:
    """Name → "module:attribute"; `ours` takes precedence over entry points of the group in other packages."""
    return {entry.name: entry.value for entry in entry_points(group=group)} | dict(ours)


def load_plugin(kind: str, name: str, offered: Mapping[str, str], where: str) -> Any:
    """Import the object that a name stands for; other packages may have written it.

    Args:
        kind: "framework" or "site", for messages.
        name: the name to look up.
        offered: name → "module:attribute".
        where: the key of the study that has the name, for messages.

    Raises:
        SpecError: the name is unknown.
    """
    if name not in offered:
        raise SpecError(f"{where}: unknown {kind} '{name}'", hint=did_you_mean(name, offered))
    module, _, attribute = offered[name].partition(":")
    return getattr(import_module(module), attribute)
