from __future__ import annotations

from pathlib import Path

import pytest

from paceline.cli import main
from paceline.spec import load_study


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_study_to_start_from_is_written_with_what_to_type_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0

    printed = capsys.readouterr()
    assert load_study("study.toml").name == "study"
    assert printed.out == "written: study.toml\n"
    assert "paceline run study.toml" in printed.err


def test_study_is_called_after_its_file() -> None:
    assert main(["init", "studies/my first.toml"]) == 0

    assert load_study("studies/my first.toml").name == "my-first"


def test_nothing_is_overwritten_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("model.py").write_text("mine", encoding="utf-8")

    assert main(["init", "--example", "own-graph"]) == 2
    assert not Path("own-graph.toml").exists()
    assert Path("model.py").read_text(encoding="utf-8") == "mine"
    assert "model.py: there is such a file already" in capsys.readouterr().err

    assert main(["init", "--example", "own-graph", "--force"]) == 0
    assert load_study("own-graph.toml").axes["workload.model"] == ("model.py",)
    assert Path("model.py").read_text(encoding="utf-8") != "mine"


def test_list_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["init", "--list"]) == 0

    assert "quickstart" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Path("taken").write_text("", encoding="utf-8")

    assert main(["init", "taken/study.toml"]) == 2
    assert "cannot be written" in capsys.readouterr().err
