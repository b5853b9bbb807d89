"""MXNet's collectives by themselves, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from collective_rig import assert_measured, run_all


def test_every_operation_gives_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_measured(run_all("mxnet", tmp_path, monkeypatch), {"push_pull"}, "ps-lite")
