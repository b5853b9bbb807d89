"""Plug-ins by name: a literal dict first, entry points of installed packages second. Loaded on use.

A leaf but for `errors`: the families (`frameworks`, `sites`) each have their own dict and never meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from paceline.errors import SpecError, did_you_mean


def known_plugins(group: str, ours: Mapping[str, str]) -> dict[str, str]:
    """Name → "module:attribute"; ours win over what other packages offer under the entry point group."""
    return {entry.name: entry.value for entry in entry_points(group=group)} | dict(ours)


def load_plugin(kind: str, name: str, known: Mapping[str, str], where: str) -> Any:
    """What a name stands for.

    Raises:
        SpecError: nobody offers that name; `where` is the key that asked for it.
    """
    if name not in known:
        raise SpecError(f"{where}: unknown {kind} '{name}'", hint=did_you_mean(name, known))
    module, _, attribute = known[name].partition(":")
    return getattr(import_module(module), attribute)
