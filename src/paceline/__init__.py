"""Paceline: which framework and configuration trains my model best on my machines, with evidence.

The street: spec → plan → run → record → compare → model → report. Left of the record we act; right of it we only
compute.
"""

from importlib import import_module

from paceline._version import __version__

__all__ = ["Records", "Study", "__version__", "fit", "load_study", "predict", "records", "run_study"]

_HOMES = {
    "Records": "paceline.api",
    "Study": "paceline.spec",
    "fit": "paceline.api",
    "load_study": "paceline.spec",
    "predict": "paceline.api",
    "records": "paceline.api",
    "run_study": "paceline.api",
}
"""Public name → where it lives. None is called like a stage: importing a stage binds its name in this package."""


def __getattr__(name: str) -> object:
    # Loaded on use: `import paceline` for its version must not cost a second of imports.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'paceline' has no attribute {name!r}")
