"""PyTorch's collectives by themselves, over gloo, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from collective_rig import assert_measured, run_all, study
from paceline.errors import SpecError
from paceline.prepared import PreparedStudy
from paceline.spec import read_study

ALL = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"}


def test_every_operation_gives_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_measured(run_all("torch", tmp_path, monkeypatch), ALL, "gloo")


def test_three_ranks_share_what_does_not_divide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_all("torch", tmp_path, monkeypatch, workers=3)

    assert_measured(found, ALL - {"send_recv"}, "gloo", ranks=3)


def test_wrong_sizes_are_refused_before_anything_runs(tmp_path: Path) -> None:
    data = study("torch", ["all_reduce"])
    data["workload"]["collective"]["sizes"] = "1KiB,6B"

    with pytest.raises(SpecError, match="6B is no whole number of float32"):
        PreparedStudy.of(read_study(data))
