"""Where Paceline keeps records, and where it keeps files that it can build again. Imports nothing else of Paceline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """PACELINE_CACHE, or `paceline` in the user's cache folder, as an absolute path."""
    env = os.environ if environ is None else environ
    if chosen := env.get("PACELINE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = env.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path must be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "paceline"


def store_folder(given: str | Path | None = None) -> Path:
    """The given folder (--store), or else PACELINE_STORE, or else .paceline in the current folder."""
    return Path(given or os.environ.get("PACELINE_STORE") or ".paceline")
