"""Frameworks live in the real cache, where their environments are; stores and the machine's lock are the tests' own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the contract tests' own, which hides the environments."""
    monkeypatch.setenv("PACELINE_LOCK", str(tmp_path / "lock"))


@pytest.fixture(autouse=True)
def own_core(worker_id: str) -> Iterator[None]:
    """Tests side by side each on a core of their own: pinned ranks would else all meet on the first."""
    before = os.sched_getaffinity(0)
    if worker_id != "master":
        cores = sorted(before)
        os.sched_setaffinity(0, {cores[int(worker_id.removeprefix("gw")) % len(cores)]})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="session")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that all proofs of this test process share: what they are judged by runs once."""
    return tmp_path_factory.mktemp("proofs")
