"""Frameworks by name: a literal dict first, entry points of the group `paceline.frameworks` second."""

from __future__ import annotations

from paceline.frameworks.base import Framework
from paceline.plugins import known_plugins, load_plugin

__all__ = ["FRAMEWORKS", "Framework", "known_frameworks", "load_framework"]

FRAMEWORKS = {
    "null": "paceline.frameworks.null:NULL",
    "torch": "paceline.frameworks.torch:TORCH",
    "jax": "paceline.frameworks.jax:JAX",
    "mpi": "paceline.frameworks.mpi:MPI",
    "script": "paceline.frameworks.script:SCRIPT",
    "mxnet": "paceline.frameworks.mxnet:MXNET",
    "reference": "paceline.frameworks.reference:REFERENCE",
    "tensorflow": "paceline.frameworks.tensorflow:TENSORFLOW",
    "keras-tensorflow": "paceline.frameworks.keras:KERAS_TENSORFLOW",
    "keras-jax": "paceline.frameworks.keras:KERAS_JAX",
    "keras-torch": "paceline.frameworks.keras:KERAS_TORCH",
}
"""id → where its host half lives."""


def known_frameworks() -> dict[str, str]:
    """Frameworks of Paceline and of installed plug-in packages."""
    return known_plugins("paceline.frameworks", FRAMEWORKS)


def load_framework(name: str, where: str = "framework.name") -> Framework:
    """The host half of a framework; raises SpecError for an unknown name."""
    framework: Framework = load_plugin("framework", name, known_frameworks(), where)
    return framework
