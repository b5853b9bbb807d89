"""The shells themselves complete what `paceline completion` says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.cli import COMMANDS
from shell_rig import Shell
from street import paceline

ASK = """
source completion.bash
COMP_WORDS=(paceline "$@")
COMP_CWORD=$#
"$(complete -p paceline | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    ended = paceline(folder, "completion", "bash")
    assert (ended.returncode, ended.stderr) == (0, "")
    (folder / "completion.bash").write_text(ended.stdout, encoding="utf-8")
    (folder / "mine.toml").touch()
    (folder / "mine.txt").touch()
    return folder


def completed(folder: Path, *words: str) -> set[str]:
    """What bash would offer for the last word."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    asked = subprocess.run(
        [bash, "--norc", "-c", ASK, "bash", *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(asked.stdout.split())


def test_bash_completes_every_command(place: Path) -> None:
    assert set(COMMANDS) <= completed(place, "")
    assert completed(place, "comp") == {"compare", "completion"}


def test_bash_completes_flags_of_the_command(place: Path) -> None:
    assert completed(place, "init", "--") == {"--help", "--example", "--list", "--force", "--json"}
    assert "--html" in completed(place, "report", "--")


def test_bash_completes_names(place: Path) -> None:
    assert completed(place, "init", "--example", "quick") == {"quickstart"}
    assert "torch-cpu" in completed(place, "env", "build", "to")


def test_bash_completes_study_files(place: Path) -> None:
    assert completed(place, "run", "mi") == {"mine.toml"}


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_script_knows_every_command(name: str, tmp_path: Path) -> None:
    script = paceline(tmp_path, "completion", name).stdout

    assert all(command in script for command in COMMANDS)


SHELLS = ["bash", *(pytest.param(name, marks=pytest.mark.shells) for name in ("zsh", "fish"))]


def shell_at(name: str, folder: Path) -> Iterator[Shell]:
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here: make test-browser installs it, as root")
    shell = Shell(name, folder)
    for file in ("mine.toml", "mine.txt", "old.zip", "folder/other.toml"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    yield shell
    shell.close()


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    yield from shell_at(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(params=SHELLS)
def fresh_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    yield from shell_at(request.param, tmp_path)


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("paceline recom", "recommend"),
        ("paceline --trace", "--traceback"),
        ("paceline run --ret", "--retry-failed"),
        ("paceline report mine.toml --sv", "--svg"),
        ("paceline run mi", "mine.toml"),
        ("paceline explain folder/o", "folder/other.toml"),
        ("paceline import ol", "old.zip"),
        ("paceline report mine.toml --html mine.tx", "mine.txt"),
        ("paceline plan mine.toml --store fol", "folder"),
        ("paceline init --example quick", "quickstart"),
        ("paceline env bui", "build"),
        ("paceline env build torch", "torch-cpu"),
        ("paceline predict --network 30", "300Mbit"),
        ("paceline recommend --goal th", "throughput"),
        ("paceline probe network --site kub", "kubernetes"),
    ],
)
def test_shell_completes_commands_flags_files_and_names(shell: Shell, typed: str, last: str) -> None:
    *before, word = shell.completed(typed)

    assert before == typed.split()[:-1]
    assert word.rstrip("/") == last


def test_shell_lists_what_a_word_may_become(fresh_shell: Shell) -> None:
    fresh_shell.lists("paceline re", "recommend", "report")


def test_unknown_shell_is_refused(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "completion", "ksh")

    assert ended.returncode == 2
    assert "did you mean 'zsh'?" in ended.stderr
    assert "paceline completion --help" in ended.stderr
