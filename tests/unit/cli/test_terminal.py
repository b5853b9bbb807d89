"""Text on terminals and pipes: the same words, and colour only where it is wanted."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.color_triplet import ColorTriplet

from paceline.cli.terminal import console_of, put
from paceline.report.colours import STYLES
from street import command_environment, paceline, study_of, to_toml

TEXT = "Answer: 2 workers train 1.9 × as fast (1.8–2.0).\nCaution: one run.\n\nWarnings\n  - spread: [1] …\nnext: paceline run"
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Pipe(io.StringIO):
    encoding = "utf-8"


@pytest.fixture(autouse=True)
def ordinary_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def shown(stream: io.StringIO) -> str:
    put(TEXT, stream)
    return stream.getvalue()


def test_terminal_has_colour_and_the_same_words() -> None:
    text = shown(Terminal())

    assert "\x1b[1m" in text
    assert ESCAPES.sub("", text) == TEXT + "\n"


def test_pipe_has_the_words_alone() -> None:
    assert shown(Pipe()) == TEXT + "\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "unknown"), ("TERM", "")])
def test_terminal_without_colour_has_no_escape_codes(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)

    assert shown(Terminal()) == TEXT + "\n"


def luminance(colour: ColorTriplet) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


OURS = [name for name, style in STYLES.styles.items() if name.startswith("text.") and style.color]


@pytest.mark.parametrize("name", [*OURS, "bar.complete", "bar.finished", "bar.back"])
def test_every_colour_can_be_read_on_black_and_on_white(name: str) -> None:
    bright = luminance(STYLES.styles[name].color.get_truecolor())

    assert 1.05 / (bright + 0.05) >= 4
    assert (bright + 0.05) / 0.05 >= 4


@pytest.mark.parametrize(
    "line",
    [
        "Verdicts",
        "Is this number normal?\n  - model: as expected",
        "From 1 to 4 workers, 26% of the speed per worker is lost (simulated); of that\n  - +89% latency",
        "overlap=0, samples/s",
        "4 workers · overlap=0.5: step 67.4 ms (simulated)",
        "Choose 4 workers: 1898 (1887–1910) samples/s.",
    ],
)
def test_titles_and_answers_are_bold(line: str) -> None:
    stream = Terminal()
    put(line, stream)

    assert stream.getvalue().startswith("\x1b[1m")


def test_items_and_sentences_are_not_bold() -> None:
    stream = Terminal()
    put("Verdicts\n  - a is faster\n    than b\n\nPlain words, in a row.", stream)

    assert stream.getvalue().count("\x1b[1m") == 1


@pytest.mark.parametrize(("term", "colours"), [("xterm", "256"), ("tmux", "256"), ("linux", "standard")])
def test_terminal_gets_as_many_colours_as_it_knows(term: str, colours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)

    assert console_of(Terminal()).color_system == colours


def test_empty_no_color_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")

    assert "\x1b[" in shown(Terminal())


def test_long_line_is_left_to_the_terminal() -> None:
    stream = Terminal()
    put("x" * 300, stream)

    assert stream.getvalue() == "x" * 300 + "\n"


def on_a_terminal(folder: Path, *words: str, columns: int, **extra: str) -> str:
    """What the real command line draws on a terminal of so many columns."""
    main, other = pty.openpty()
    extra = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24", **extra}
    environment = command_environment(folder, **extra)
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in extra else None
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", *words], cwd=folder, env=environment, stdout=other, stderr=other
    )
    os.close(other)
    drawn = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        drawn += part
    os.close(main)
    assert process.wait() == 0, drawn.decode()
    return drawn.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 160])
def test_study_is_run_with_a_bar_and_no_line_wraps(columns: int, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of(cluster={"workers_per_host": [1, 2]})), encoding="utf-8")
    drawn = on_a_terminal(tmp_path, "run", "s.toml", columns=columns)
    lines = [ESCAPES.sub("", line) for line in drawn.splitlines()]
    bars = [line for line in lines if "━" in line]

    assert len(bars) == 4
    assert all("left" in line for line in bars)
    assert max(len(line.rstrip()) for line in lines[: lines.index(bars[-1]) + 2]) == min(columns, 100)
    # Each bar is drawn once, and gives its line to the result: nothing is drawn while workers measure.
    assert drawn.count("\x1b[1A\x1b[2K") == 4
    assert "\x1b[?25l" not in drawn


MOVES = re.compile(r"\x1b\[1A\x1b\[2K")
"""Up one line, and erase it: all that a bar needs."""


def test_without_colour_the_cursor_moves_for_the_bar_and_nothing_else_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of(cluster={"workers_per_host": [1, 2]})), encoding="utf-8")
    run = on_a_terminal(tmp_path, "run", "s.toml", columns=80, NO_COLOR="1")
    compared = on_a_terminal(tmp_path, "compare", "s.toml", columns=80, NO_COLOR="1")

    assert len(MOVES.findall(run)) == 4
    assert "\x1b" not in MOVES.sub("", run)
    assert "\x1b" not in compared


def test_dumb_terminal_gets_no_escape_code_at_all(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of(cluster={"workers_per_host": [1, 2]})), encoding="utf-8")
    run = on_a_terminal(tmp_path, "run", "s.toml", columns=80, TERM="dumb")
    compared = on_a_terminal(tmp_path, "compare", "s.toml", columns=80, TERM="dumb")

    assert "\x1b" not in run + compared
    assert "━" not in run
    assert run.count(" left\n") == 4


def test_pipe_gets_no_escape_code_at_all_even_where_colour_is_forced(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of(cluster={"workers_per_host": [1, 2]})), encoding="utf-8")
    # Rich, which draws our tables, would listen to these.
    forced = {"TERM": "xterm-256color", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}
    ended = [paceline(tmp_path, *words, **forced) for words in (("run", "s.toml"), ("compare", "s.toml", "--all"))]

    for process in ended:
        assert process.returncode == 0
        assert "\x1b" not in process.stdout + process.stderr


def test_terminal_in_plain_ascii_is_told_the_names_of_runs_in_it(tmp_path: Path) -> None:
    data = study_of({"overlap": [0.0, 0.5]}, cluster={"workers_per_host": [1, 2]})
    (tmp_path / "s.toml").write_text(to_toml(data), encoding="utf-8")
    drawn = on_a_terminal(tmp_path, "run", "s.toml", columns=80, PYTHONIOENCODING="ascii")

    assert drawn.isascii()
    assert "1 worker . overlap=0.5" in drawn
    assert "\\" not in drawn


def test_file_is_the_same_from_a_wide_terminal_as_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of()), encoding="utf-8")
    paceline(tmp_path, "run", "s.toml")
    piped = paceline(tmp_path, "report", "s.toml", "--output", "piped.txt")
    on_a_terminal(tmp_path, "report", "s.toml", "--output", "drawn.txt", columns=160)
    text = (tmp_path / "drawn.txt").read_text(encoding="utf-8")

    assert piped.returncode == 0
    assert text == (tmp_path / "piped.txt").read_text(encoding="utf-8")
    assert "\x1b" not in text


def test_json_is_the_same_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of()), encoding="utf-8")

    drawn = on_a_terminal(tmp_path, "plan", "s.toml", "--json", columns=80)

    assert drawn.startswith("{\n")
    assert "\x1b" not in drawn


@pytest.mark.parametrize("words", [("--version",), ("plan", "s.toml"), ("plan", "s.toml", "--json")])
def test_rich_is_not_loaded_where_nothing_is_coloured(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of()), encoding="utf-8")
    program = (
        "import atexit, sys; from paceline.cli import main; "
        "atexit.register(lambda: print('loaded', [m for m in ('rich', 'shtab') if m in sys.modules], file=sys.stderr)); "
        f"main({list(words)!r})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stderr.endswith("loaded []\n")
