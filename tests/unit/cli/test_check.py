"""`check fairness` says what to do next, and only what helps with what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.cli import check, make_parser
from paceline.compare import AGREES, NO_PROOF, NOT_COMPARABLE, Fairness, Proof
from paceline.errors import FairnessError
from paceline.snapshot import Snapshot
from street import study_of, to_toml


def hint_after(folder: Path, monkeypatch: pytest.MonkeyPatch, *verdicts: str) -> str:
    """The hint of the command when the proofs of a study come out like this."""
    proofs = [
        Proof(
            trial=str(number),
            framework="jax",
            strategy="single",
            strategy_class="exact",
            workload="mlp",
            workers=1,
            verdict=verdict,
            reasons=("because",),
        )
        for number, verdict in enumerate(verdicts)
    ]
    monkeypatch.setattr(check.Workbench, "run", lambda *_args, **_options: [])
    monkeypatch.setattr(Snapshot, "fairness", Fairness(proofs))
    path = folder / "s.toml"
    path.write_text(to_toml(study_of()), encoding="utf-8")
    with pytest.raises(FairnessError) as caught:
        check.main(make_parser().parse_args(["check", "fairness", str(path), "--store", str(folder / "store")]))

    return caught.value.hint or ""


def test_what_failed_is_to_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hint = hint_after(tmp_path, monkeypatch, AGREES, NO_PROOF)

    assert "see the reasons above" in hint
    assert "--retry-failed" in hint
    assert "not ranked" not in hint


def test_what_is_not_comparable_ended_well_and_is_not_to_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = hint_after(tmp_path, monkeypatch, AGREES, NOT_COMPARABLE)

    assert "see the reasons above" in hint
    assert "--retry-failed" not in hint
    assert "not ranked" in hint


def test_each_of_two_shortcomings_has_its_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hint = hint_after(tmp_path, monkeypatch, NO_PROOF, NOT_COMPARABLE)

    assert "--retry-failed" in hint
    assert "not ranked" in hint


def test_where_nothing_can_be_proved_there_are_no_reasons_and_nothing_to_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = hint_after(tmp_path, monkeypatch)

    assert "reasons above" not in hint
    assert "--retry-failed" not in hint
    assert "paceline plan" in hint
