"""The shells themselves complete what `paceline completion` says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from paceline.cli import COMMANDS
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


@pytest.mark.parametrize(("shell", "check"), [("bash", ("-n",)), ("zsh", ("-n",)), ("fish", ("--no-execute",))])
def test_script_is_one_that_the_shell_can_read(shell: str, check: tuple[str, ...], tmp_path: Path) -> None:
    script = paceline(tmp_path, "completion", shell).stdout
    (tmp_path / "script").write_text(script, encoding="utf-8")

    assert "quickstart" in script
    assert "--retry-failed" in script or "retry-failed" in script
    if program := shutil.which(shell):
        read = subprocess.run([program, *check, "script"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


def test_unknown_shell_is_refused(tmp_path: Path) -> None:
    ended = paceline(tmp_path, "completion", "ksh")

    assert ended.returncode == 2
    assert "did you mean 'zsh'?" in ended.stderr
    assert "paceline completion --help" in ended.stderr
