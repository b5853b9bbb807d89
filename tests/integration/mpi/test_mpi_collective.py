"""MPI's collectives by themselves, MPICH over its own start-up, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from collective_rig import assert_measured, run_all

pytestmark = pytest.mark.frameworks
ALL = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"}


def test_every_operation_gives_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_measured(run_all("mpi", tmp_path, monkeypatch), ALL, "mpi")


def test_three_ranks_share_what_does_not_divide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_measured(run_all("mpi", tmp_path, monkeypatch, workers=3), ALL - {"send_recv"}, "mpi", ranks=3)
