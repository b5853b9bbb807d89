"""What the tutorial tells people to type works, and prints what the page shows.

In docs/tutorial/*.md a block ```toml file=NAME is saved under that name, and a block ```console run (or
```console run exit=N) is executed: lines after "$ " are commands, the others are what they print. Numbers, hashes and
bars are not compared; "…" stands for anything.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from street import paceline

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANYTHING = "…"


class Block(NamedTuple):
    language: str
    marks: list[str]
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(m[1], m[2].split(), m[3]) for m in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """Commands of a console block, each with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        else:
            found[-1][1].append(line)
    return found


def plain(text: str) -> str:
    """The text without what differs from machine to machine and run to run."""
    text = re.sub(r"-[0-9a-f]{8}\b", "-#", text)
    text = re.sub(r"\d+(\.\d+)?(e-?\d+)?", "#", text)
    text = re.sub(r"# (µs|ms|s|min|h)\b", "# time", text)
    return " ".join(text.split())


def assert_shows(shown: list[str], actual: str) -> None:
    """Every piece between two "…" is in what was printed, in that order."""
    rest = plain(actual)
    pieces = [piece.strip() for piece in plain("\n".join(shown)).split(_ANYTHING)]
    for piece in filter(None, pieces):
        before, found, rest = rest.partition(piece)

        assert found, f"not printed: {piece!r}\nin: {before!r}"


@pytest.mark.processes
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_commands_work_and_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "studies", tmp_path / "studies")
    executed = 0
    for block in blocks_of(page):
        for mark in block.marks:
            if mark.startswith("file="):
                (tmp_path / mark.removeprefix("file=")).write_text(block.text, encoding="utf-8")
        if block.language != "console" or "run" not in block.marks:
            continue
        expected = next((int(mark.removeprefix("exit=")) for mark in block.marks if mark.startswith("exit=")), 0)
        for command, shown in commands_of(block.text):
            program, *args = shlex.split(command)
            assert program == "paceline"
            ended = paceline(tmp_path, *args)
            executed += 1

            assert (ended.returncode, command) == (expected, command), ended.stderr
            # A terminal shows both together; words come before and after the result.
            assert_shows([line for line in shown if line.strip()], ended.stderr + ended.stdout + ended.stderr)

    assert executed > 0


def test_notebook_runs_and_shows_the_slow_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    names = runpy.run_path(str(ROOT / "docs" / "tutorial" / "notebook.py"))

    assert "12 runs, 12 ended well" in capsys.readouterr().out
    by_factor = names["runs"][names["runs"]["workers"] == 2].groupby("knob.slow_factor")["step_s"].mean()
    assert by_factor[1.5] > 1.3 * by_factor[1.0]
    assert len(names["samples"]) == 3 * 22 * (1 + 1 + 2 + 2)


def test_shown_output_that_is_not_printed_is_noticed() -> None:
    assert_shows(["a 1.5 s", "…", "b"], "a 300 ms\nanything\nb")

    with pytest.raises(AssertionError, match="not printed: 'c'"):
        assert_shows(["a", "…", "c"], "a\nb")
    with pytest.raises(AssertionError, match="not printed: 'a'"):
        assert_shows(["b", "…", "a"], "a\nb")
