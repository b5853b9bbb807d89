"""Where Paceline keeps what it can make again. A leaf: imports nothing of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_root(environ: Mapping[str, str] | None = None) -> Path:
    """PACELINE_CACHE, or `paceline` in the user's cache folder; absolute, to be used from anywhere."""
    env = os.environ if environ is None else environ
    if chosen := env.get("PACELINE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = env.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "paceline"
