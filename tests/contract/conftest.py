from __future__ import annotations

from pathlib import Path

import pytest

from paceline.folders import cache_root

BUILT = cache_root()
"""Where environments are built already, as the tests were told, before any of them sets a cache of its own."""


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock and a cache of the test's own: tests run side by side, and law time measures nothing."""
    monkeypatch.setenv("PACELINE_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def built_environments(own_machine: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of whoever runs the tests, in place of the test's own."""
    del own_machine
    monkeypatch.setenv("PACELINE_CACHE", str(BUILT))
    return BUILT
