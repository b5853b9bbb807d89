"""Runs collectives of a framework through the whole street, in its own environment where that is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.frameworks import load_framework
from paceline.prepared import environment_of
from paceline.record import Record
from paceline.spec import read_study
from paceline.workbench import Workbench

SIZES = (1024, 16384, 262144)


def study(framework: str, operations: list[str], *, workers: int = 2) -> dict[str, Any]:
    return {
        "study": {"name": "links"},
        "workload": {"model": "collective", "collective": {"operation": operations, "sizes": "1KiB,16KiB,256KiB"}},
        "framework": {"name": framework},
        "cluster": {"workers_per_host": workers, "oversubscribe": True},
        "measure": {"warmup_steps": 1, "steps": 3, "repeats": 1},
    }


def run_all(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, workers: int = 2) -> dict[str, Record]:
    """Operation → its record, for all that the framework offers."""
    host = load_framework(framework)
    state = environment_of(host).state()
    if state.state != "ready":
        pytest.skip(f"environment of {framework} is {state.state}: {state.reason}; {state.fix}")
    monkeypatch.setenv("PACELINE_LOCK", str(tmp_path / "lock"))
    operations = list(host.capabilities.collectives)
    bench = Workbench(read_study(study(framework, operations, workers=workers)), tmp_path)
    bench.run()
    return {str(record.trial.workload.options["operation"]): record for record in bench.snapshot().records}


def assert_measured(records: dict[str, Record], operations: set[str], library: str, *, ranks: int = 2) -> None:
    """Every operation ended well, its results verified, with a time for each rank, round and size."""
    assert set(records) == operations
    for operation, record in records.items():
        assert record.ok, (operation, record.outcome)
        assert {(rank.facts["library"], rank.facts["verified"]) for rank in record.ranks} == {(library, True)}
        assert record.samples is not None
        rows = record.samples.to_pylist()
        assert len(rows) == ranks * 4 * len(SIZES)
        whole = 4 * ranks if operation in {"all_gather", "reduce_scatter"} else 4
        assert [row["bytes"] for row in rows[: len(SIZES)]] == [size // whole * whole for size in SIZES]
        assert all(row["wall_s"] > 0 for row in rows)
        assert not [doubt for doubt in record.doubts if doubt.code.startswith("impossible-")]
