"""Paceline: which framework and configuration trains my model best on my machines, with evidence.

The street: spec → plan → run → record → compare → report. Left of the record we act; right of it we only compute.
"""

from paceline._version import __version__

__all__ = ["Records", "Study", "__version__", "load_study", "records", "run"]


def __getattr__(name: str) -> object:
    # Loaded on use: `import paceline` for its version must not cost a second of imports.
    if name in {"Records", "records", "run"}:
        from paceline import api  # noqa: PLC0415

        return getattr(api, name)
    if name in {"Study", "load_study"}:
        from paceline import spec  # noqa: PLC0415

        return getattr(spec, name)
    raise AttributeError(f"module 'paceline' has no attribute {name!r}")
