"""Collectives by themselves, through the whole street with `null`: the law's times, a real ring, skips, no proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import SpecError
from paceline.prepared import PreparedStudy
from paceline.spec import read_study
from paceline.workbench import Workbench
from schemas import assert_valid
from street import paceline, run_study, study_of, to_toml

ALPHA, BETA = 1e-4, 1e-8
SIZES = (1024, 4096, 16384)


def study(
    operation: str | list[str], *, time: str = "law", workers: int | list[int] = 2, **knobs: Any
) -> dict[str, Any]:
    return {
        "study": {"name": "links"},
        "workload": {"model": "collective", "collective": {"operation": operation, "sizes": "1KiB..16KiB"}},
        "framework": {
            "name": "null",
            "null": {"time": time, "alpha_s": ALPHA, "beta_s_per_byte": BETA, **knobs},
        },
        "cluster": {"workers_per_host": workers, "oversubscribe": True},
        "measure": {"warmup_steps": 1, "steps": 10, "repeats": 1},
    }


def law(operation: str, size: int, ranks: int) -> float:
    """Written apart from the worker's."""
    return {
        "all_reduce": 2 * (ranks - 1) * ALPHA + 2 * (ranks - 1) / ranks * size * BETA,
        "all_gather": (ranks - 1) * ALPHA + (ranks - 1) / ranks * size * BETA,
        "reduce_scatter": (ranks - 1) * ALPHA + (ranks - 1) / ranks * size * BETA,
        "broadcast": (ranks - 1) * (ALPHA + size * BETA),
        "send_recv": ALPHA + size * BETA,
    }[operation]


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"])
def test_law_time_is_the_law_for_every_size(operation: str, tmp_path: Path) -> None:
    (record,) = run_study(study(operation), tmp_path)

    assert record.ok, record.outcome
    assert record.samples is not None
    rows = record.samples.to_pylist()
    assert len(rows) == 2 * 11 * len(SIZES)
    for row in rows:
        assert row["bytes"] == SIZES[row["step"] % len(SIZES)]
        assert row["wall_s"] == pytest.approx(law(operation, row["bytes"], 2))
        assert row["phase.communication"] == row["wall_s"]
    assert [row["kind"] for row in rows[: len(SIZES) + 1]] == ["first", "warmup", "warmup", "measured"]
    assert [doubt.code for doubt in record.doubts] == ["simulated"]


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"])
def test_real_ring_takes_at_least_the_law(operation: str, tmp_path: Path) -> None:
    (record,) = run_study(study(operation, time="real"), tmp_path)

    assert record.ok, record.outcome
    assert record.samples is not None
    assert all(row["wall_s"] >= 0.99 * law(operation, row["bytes"], 2) for row in record.samples.to_pylist())
    assert not [doubt for doubt in record.doubts if doubt.code.startswith("impossible-")]
    assert {rank.facts["library"] for rank in record.ranks} == {"ring"}


def test_three_ranks_pass_bytes_round(tmp_path: Path) -> None:
    records = run_study(study(["all_reduce", "all_gather", "broadcast"], time="real", workers=3), tmp_path)

    assert [record.outcome.kind.value for record in records] == ["ok"] * 3


def test_what_cannot_be_done_is_skipped_with_the_reason(tmp_path: Path) -> None:
    plan = Workbench(read_study(study(["push_pull", "send_recv"], workers=[1, 2, 3])), tmp_path).snapshot().plan

    assert [run.trial.id.rpartition("-")[0] for run in plan.runs] == ["null-allreduce.send_recv.2w1t"]
    reasons = [skip.reason for skip in plan.skipped]
    assert sum("has no push_pull" in reason for reason in reasons) == 3
    assert "send_recv needs at least 2 workers" in reasons
    assert "send_recv is between 2 workers, not 3" in reasons


def test_two_frameworks_need_no_proof(tmp_path: Path) -> None:
    data = study("all_reduce")
    data["framework"] = {"name": ["torch", "keras-jax"]}
    bench = Workbench(read_study(data), tmp_path)

    assert set(bench.prepared.frameworks) == {"torch", "keras-jax"}
    assert not bench.prepared.proving
    assert "offers no collective operations by themselves" in [skip.reason for skip in bench.snapshot().plan.skipped]


def test_a_fault_ends_the_run(tmp_path: Path) -> None:
    (record,) = run_study(study("all_reduce", time="real", fault="crash", fault_rank=1, fault_step=3), tmp_path)

    assert (record.outcome.kind.value, record.outcome.rank) == ("failed", 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_per_worker": 8}, "a collective has no batch"),
        ({"collective": {"batch_per_worker": 8}}, "the study has no batch_per_worker"),
        ({"model": ["collective", "mlp"]}, "cannot be compared with models"),
        ({"collective": {"sizes": "3B"}}, "no whole number of float32"),
    ],
)
def test_wrong_studies_are_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    data = study("all_reduce")
    data["workload"] |= changed
    with pytest.raises(SpecError, match=message):
        PreparedStudy.of(read_study(data))


def test_commands_show_tables_and_print_what_their_schemas_say(tmp_path: Path) -> None:
    (tmp_path / "links.toml").write_text(to_toml(study(["all_reduce", "push_pull"])), encoding="utf-8")

    for schema, words in (
        ("probe", ("probe", "network")),
        ("run", ("run",)),
        ("compare", ("compare",)),
        ("report", ("report",)),
    ):
        ended = paceline(tmp_path, *words, "links.toml", "--json")
        assert ended.returncode == 0, ended.stderr
        found = json.loads(ended.stdout)
        assert_valid("collectives" if schema == "compare" else schema, found)
        tables = found["tables"] if schema == "compare" else found["collectives"]["tables"]
        assert [(table["operation"], table["outcome"]) for table in tables] == [
            ("all_reduce", "ok"),
            ("push_pull", "skipped"),
        ]
        assert [row["size"] for row in tables[0]["sizes"]] == list(SIZES)
        for row in tables[0]["sizes"]:
            assert row["time_s"]["value"] == pytest.approx(law("all_reduce", row["size"], 2))
            assert row["busbw"]["value"] == pytest.approx(row["size"] / row["time_s"]["value"])
    shown = paceline(tmp_path, "compare", "links.toml").stdout
    assert "time(us)  algbw(GB/s)  busbw(GB/s)" in shown
    assert "samples/s" not in shown
    assert "has no push_pull" in shown


def test_probe_makes_its_own_study(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "probe", "network", "--framework", "script")

    assert ended.returncode == 5
    assert "offers no collective operations by themselves" in ended.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", "3", "--hosts", "2"), "cannot be divided equally"),
        (("--framework", "nobody"), "nobody"),
        (("links.toml", "--workers", "3"), "is already set by"),
        (("mlp.toml",), "should be 'collective'"),
    ],
)
def test_probe_refuses_what_makes_no_sense(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "links.toml").write_text(to_toml(study("all_reduce")), encoding="utf-8")
    (tmp_path / "mlp.toml").write_text(to_toml(study_of()), encoding="utf-8")
    ended = paceline(tmp_path, "probe", "network", *words)

    assert ended.returncode in {1, 2}
    assert message in ended.stderr
