"""`predict --device` guesses for what it was asked about, and refuses what data sheets cannot tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.cli import guesses, main
from street import study_of, to_toml

GUESS = ["predict", "--device", "V100-SXM2", "--json"]


def guessed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*GUESS, *words]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_without_a_batch_a_usual_one_is_taken_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    document = guessed(capsys, "--model", "resnet50", "--network", "10GbE")

    assert {row["batch"] for row in document["rows"]} == {32}  # type: ignore[attr-defined]
    assert any("batch 32 per worker is assumed" in remark for remark in document["remarks"])  # type: ignore[attr-defined]


def test_a_batch_that_was_asked_for_is_not_called_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    document = guessed(capsys, "--model", "resnet50", "--batch", "64")

    assert {row["batch"] for row in document["rows"]} == {64}  # type: ignore[attr-defined]
    assert not any("assumed; set it" in remark for remark in document["remarks"])  # type: ignore[attr-defined]


def test_model_framework_and_batch_of_a_study_are_guessed_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = study_of(workload={"model": "alexnet", "batch_per_worker": [4, 16]})
    data["framework"] = {"name": "jax"}
    (tmp_path / "s.toml").write_text(to_toml(data), encoding="utf-8")
    document = guessed(capsys, str(tmp_path / "s.toml"))

    assert document["family"]["model"] == "alexnet"  # type: ignore[index]
    assert document["family"]["framework"] == "jax"  # type: ignore[index]
    assert {row["batch"] for row in document["rows"]} == {16}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("nonsense", "unknown strategy 'nonsense'"),
        ("tensor", "cannot be guessed"),
        ("pipeline", "cannot be guessed"),
        ("post_local_sgd", "cannot be guessed"),
    ],
)
def test_strategies_that_no_data_sheet_tells_about_are_refused(
    capsys: pytest.CaptureFixture[str], strategy: str, expected: str
) -> None:
    assert main([*GUESS, "--model", "resnet50", "--strategy", strategy]) == 2

    told = capsys.readouterr().err
    assert expected in told
    assert "ddp" in told


def test_weights_that_are_dealt_out_take_another_step_than_copies(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--model", "resnet50", "--workers", "8", "--network", "1GbE", "--strategy"]
    copies, shares = (guessed(capsys, *asked, strategy)["rows"][0] for strategy in ("ddp", "fsdp"))  # type: ignore[index]

    assert shares["exchange_s"] > copies["exchange_s"]


def test_memory_of_a_guess_is_told_or_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["predict", "--device", "V100-SXM2", "--model", "vgg16", "--workers", "2", "--memory", "1GB"]
    assert main(asked) == 0
    assert "Memory per worker: about" in capsys.readouterr().out
    assert main([*asked, "--strategy", "fsdp"]) == 0
    assert "Not known: the memory per worker" in capsys.readouterr().out


def test_guesses_are_made_once_for_all_sizes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[str] = []

    def counted(device: str, **words: object) -> guesses.Guesses:
        asked_for.append(device)
        return make(device, **words)

    make = guesses.guesses
    monkeypatch.setattr(guesses, "guesses", counted)

    assert len(guessed(capsys, "--model", "lenet5", "--workers", "1..64")["rows"]) == 7
    assert asked_for == ["V100-SXM2"]


@pytest.mark.parametrize("flag", ["--picture", "--trace", "--chakra"])
def test_a_file_in_a_folder_that_is_not_there_is_refused_with_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    file = tmp_path / "no" / "such" / "file"

    assert main([*GUESS, "--model", "lenet5", flag, str(file)]) == 4
    told = capsys.readouterr().err
    assert f"error: {file}: cannot be written" in told
    assert f"mkdir -p {file.parent}" in told
