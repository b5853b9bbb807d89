"""A user's own program: the files it consists of, and their identity."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.workloads import known_sizes, read_program

FILES = {
    "train.py": "import os, torch\nimport data\nfrom net.blocks import Block\n\ndef main():\n    import late\n",
    "data.py": "",
    "late.py": "",
    "unused.py": "",
    "net/__init__.py": "",
    "net/blocks.py": "from . import layers\nfrom .heads.linear import Head\n",
    "net/layers.py": "",
    "net/heads/linear.py": "",
    "configs/a.toml": "a = 1",
    "configs/b.toml": "b = 1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    return tmp_path / "own"


def test_modules_beside_the_script_are_found_by_its_imports(folder: Path) -> None:
    program = read_program(folder / "train.py")

    assert program.script == "train.py"
    assert set(program.files) == {
        "train.py",
        "data.py",
        "late.py",
        "net/__init__.py",
        "net/blocks.py",
        "net/layers.py",
        "net/heads/linear.py",
    }


def test_listed_files_are_part_of_it(folder: Path) -> None:
    program = read_program(folder / "train.py", files="configs/*.toml unused.py")

    assert {"configs/a.toml", "configs/b.toml", "unused.py"} <= set(program.files)


@pytest.mark.parametrize("pattern", ["nothing.csv", "../*.py", "/etc/hosts"])
def test_file_that_is_not_there_or_lies_elsewhere_is_refused(folder: Path, pattern: str) -> None:
    (folder.parent / "outside.py").write_text("", encoding="utf-8")
    with pytest.raises(SpecError, match="is no file in or below own/"):
        read_program(folder / "train.py", files=pattern)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("a.toml", "configs/a.toml"),
        ("config/a.toml", "configs/a.toml"),
        ("unsed.py", "unused.py"),
        ("net/block.py", "net/blocks.py"),
    ],
)
def test_misspelt_file_is_answered_with_what_is_there(folder: Path, pattern: str, meant: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_program(folder / "train.py", files=pattern)

    assert (caught.value.hint or "").startswith("did you mean ")
    assert meant in (caught.value.hint or "")


def test_misspelt_script_is_answered_with_the_nearest_one(folder: Path) -> None:
    with pytest.raises(SpecError, match="no such script") as caught:
        read_program(folder / "trian.py")

    assert "did you mean train.py" in (caught.value.hint or "")


def test_working_directory_that_is_no_folder_is_refused(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"workload\.working_directory: .*train\.py is no folder"):
        read_program(folder / "train.py", working_directory=folder / "train.py")


def test_every_changed_file_makes_another_program_and_an_unused_one_does_not(folder: Path) -> None:
    def identity() -> str:
        return read_program(folder / "train.py", files="configs/a.toml").hash

    before = identity()
    (folder / "unused.py").write_text("changed", encoding="utf-8")
    assert identity() == before
    seen = {before}
    for name in ("train.py", "late.py", "net/heads/linear.py", "configs/a.toml"):
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        seen.add(identity())

    assert len(seen) == 5


def test_arguments_are_words_with_the_values_of_the_trial(folder: Path) -> None:
    program = read_program(folder / "train.py", "--batch {batch_per_worker} --title 'my own' --json '{\"a\": 1}'")

    assert program.argv({"batch_per_worker": 32}) == ["--batch", "32", "--title", "my own", "--json", '{"a": 1}']


def test_braces_that_hold_no_name_stay_and_double_ones_hand_over_a_name(folder: Path) -> None:
    program = read_program(folder / "train.py", '\'{"a": {"b": {seed}}}\' {} {{epoch}}-{{seed}}')

    assert program.argv({"seed": 7}) == ['{"a": {"b": 7}}', "{}", "{epoch}-{seed}"]


@pytest.mark.parametrize("name", ["train.py", "late.py", "configs/a.toml"])
def test_file_that_cannot_be_read_is_an_error_of_the_study(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        # The tests may run as root, who may read everything.
        if path == folder / name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(SpecError, match=f"{name}: cannot be read: Permission denied") as caught:
        read_program(folder / "train.py", files="configs/*.toml")

    assert "permissions" in (caught.value.hint or "")


def test_files_that_changed_since_they_were_planned_are_not_run(folder: Path) -> None:
    program = read_program(folder / "train.py")
    assert dict(program.contents())["train.py"] == FILES["train.py"].encode()
    (folder / "data.py").write_text("x = 1", encoding="utf-8")

    with pytest.raises(SpecError, match="changed since this was planned"):
        list(program.contents())


def test_source_for_a_newer_python_is_left_to_its_own_interpreter(folder: Path) -> None:
    (folder / "train.py").write_text("import data\nthis is no Python\n", encoding="utf-8")

    assert read_program(folder / "train.py").files == ("train.py",)


def test_nothing_is_known_of_a_program_before_it_runs(folder: Path) -> None:
    assert known_sizes(read_program(folder / "train.py")) == {}
