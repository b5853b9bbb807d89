"""What is told of each run, on a pipe and on a terminal."""

from __future__ import annotations

import io
import re
import sys

import pytest

from paceline.cli.progress import Narrator
from paceline.plan import PlannedRun
from paceline.record.record import Doubt, Record
from records import failed_record, make_record

ERASE = "\x1b[1A\x1b[2K"
NOISE = Doubt(code="noisy-neighbour", message="other programs used 40 % of the machine's CPU time", hint="close them")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def told(record: Record, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """What is drawn on stderr for one run, the third of nine."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", stream)
    narrator = Narrator()
    narrator.before(PlannedRun(trial=record.trial, repeat=1, attempt=0, estimate_s=2.0), 3, 9, 75.0)
    narrator.after(record)
    return stream.getvalue()


def test_pipe_gets_a_line_before_and_after_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = told(make_record(doubts=(NOISE,)), monkeypatch, io.StringIO()).splitlines()

    assert re.fullmatch(r"\[3/9\] torch-ddp\S+ repeat 2   about 1 min 15 s left", first)
    assert re.fullmatch(r" {8}[\d.]+ samples/s, step [\d.]+ ms, run took .*s", second)
    assert third == f"        warning: {NOISE.message}"


def test_terminal_gets_a_bar_whose_line_the_result_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    bar, result = told(make_record(), monkeypatch, Terminal()).split(ERASE)

    # NO_COLOR is set here: the cursor moves, and nothing is coloured.
    assert "\x1b" not in bar + result
    assert bar.count("\n") == result.count("\n") == 1
    assert "about 1 min 15 s left" in bar
    assert result.startswith("[3/9] ")
    assert "samples/s, step" in result
    assert max(len(bar.rstrip()), len(result.rstrip())) <= 80


def test_reason_of_a_failed_run_is_told_whole_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = told(failed_record("out_of_memory"), monkeypatch, Terminal()).split(ERASE)
    first, *below = result.splitlines()

    assert first.rstrip().endswith("out_of_memory")
    assert " ".join(" ".join(below).split()) == "out_of_memory during setup: it broke"


def test_warning_of_a_run_is_wrapped_and_set_in(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = told(make_record(doubts=(NOISE,)), monkeypatch, Terminal()).split(ERASE)
    _, *below = result.splitlines()

    assert " ".join(" ".join(below).split()) == f"warning: {NOISE.message}"
    assert all(line.startswith("        ") and len(line.rstrip()) <= 80 for line in below)
