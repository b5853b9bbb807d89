"""The frameworks Paceline knows: a literal dict first, entry points of the group `paceline.frameworks` second."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from paceline.errors import SpecError, did_you_mean
from paceline.frameworks.base import Framework

__all__ = ["FRAMEWORKS", "Framework", "known_frameworks", "load_framework"]

FRAMEWORKS = {
    "null": "paceline.frameworks.null:NULL",
    "torch": "paceline.frameworks.torch:TORCH",
    "jax": "paceline.frameworks.jax:JAX",
}
"""id → where its host half lives; loaded on use."""


def known_frameworks() -> dict[str, str]:
    """Ours and those that installed packages offer; ours win."""
    return {e.name: e.value for e in entry_points(group="paceline.frameworks")} | FRAMEWORKS


def load_framework(name: str, where: str = "framework.name") -> Framework:
    """The host half of a framework.

    Raises:
        SpecError: nobody offers that name.
    """
    known = known_frameworks()
    if name not in known:
        raise SpecError(f"{where}: unknown framework '{name}'", hint=did_you_mean(name, known))
    module, _, attribute = known[name].partition(":")
    framework: Framework = getattr(import_module(module), attribute)
    return framework
