from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock and a cache of the test's own: tests run side by side, and law time measures nothing."""
    monkeypatch.setenv("PACELINE_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
