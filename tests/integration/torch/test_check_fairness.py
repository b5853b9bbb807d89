"""`paceline check fairness` through the real command line: PyTorch, alone and with a peer, against the reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.folders import cache_root
from paceline.spec import load_study
from paceline.workbench import Workbench
from schemas import assert_valid
from street import paceline, to_toml
from torch_rig import Rig

STUDY = {
    "study": {"name": "fair", "question": "Is it fair?"},
    "workload": {"model": "mlp", "batch_per_worker": 4},
    "framework": {"name": "torch"},
    "cluster": {"workers_per_host": [1, 2], "threads_per_worker": 1},
    "measure": {"warmup_steps": 1, "steps": 2, "repeats": 1},
}


@pytest.fixture(scope="module")
def place(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the proof of the study has run; `rig` has built PyTorch's environment."""
    folder = tmp_path_factory.mktemp("fair")
    (folder / "study.toml").write_text(to_toml(STUDY), encoding="utf-8")
    return folder


def test_proof_is_printed_as_its_schema_says_and_for_people(place: Path) -> None:
    cache = str(cache_root())

    told = paceline(place, "check", "fairness", "study.toml", "--json", PACELINE_CACHE=cache)
    shown = paceline(place, "check", "fairness", "study.toml", PACELINE_CACHE=cache)

    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert_valid("check", document)
    assert [(proof["framework"], proof["workers"], proof["verdict"]) for proof in document["proofs"]] == [
        ("torch", 1, "agrees"),
        ("torch", 2, "agrees"),
    ]
    assert shown.returncode == 0, shown.stderr
    assert "agrees" in shown.stdout
    assert "next: paceline run study.toml" in shown.stderr + shown.stdout


def test_what_other_adapters_have_shown_is_shown_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paceline(place, "check", "fairness", "study.toml", PACELINE_CACHE=str(cache_root()))
    bench = Workbench(load_study(place / "study.toml"), place / "store", proving=True)

    assert bench.snapshot().plan_for(only_proof=True).runs == ()
    assert {proof.verdict for proof in bench.snapshot().fairness.proofs.values()} == {"agrees"}

    monkeypatch.setattr("paceline.snapshot.worker_digest", lambda: "of an adapter that was changed")

    assert len(bench.snapshot().plan_for(only_proof=True).runs) == 4
    assert {proof.verdict for proof in bench.snapshot().fairness.proofs.values()} == {"no proof"}
