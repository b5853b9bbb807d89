"""Phases as text: what is derived is called so, and nothing is shown as a negative time."""

from __future__ import annotations

import re

import pytest

from paceline.compare import compare
from paceline.report import comparison_table, for_encoding
from records import fused_record, make_record

SECONDS = {"forward": 0.018, "backward": 0.034, "update": -0.002}


def fused(count=3, **changes):
    return [fused_record(repeat=repeat, **({"seconds": SECONDS} | changes)) for repeat in range(count)]


def repeats(count=3, **changes):
    return [make_record(repeat=repeat, **changes) for repeat in range(count)]


def test_derived_phases_are_called_derived_and_by_what():
    text = comparison_table(compare(fused()))

    assert "inside the fused step, derived\n" in text
    assert "derived by differences of separate programs\n" in text
    assert "forward" in text
    assert "█ data  ▓ step\nphases by timers\n" in text


def test_negative_time_is_below_noise():
    text = comparison_table(compare(fused()))

    assert "≈ 0 (below noise)" in text
    assert "-2" not in text
    assert "~ 0 (below noise)" in for_encoding(text, "ascii")


def test_rows_with_phases_of_different_origin_say_so_each():
    text = comparison_table(compare([*repeats(phases_by="law", simulated=True), *fused()]))

    assert re.search(r"phases by a law: torch ddp\b.*; all others by timers", " ".join(text.split()))


def test_exchange_and_waiting_are_two_numbers_where_ranks_timed_them():
    text = comparison_table(compare(repeats()))

    assert re.search(r"communication \(transfer\) +waiting", text)
    assert "waiting" not in comparison_table(compare(repeats(workers=1)))
    assert "waiting" not in comparison_table(compare(fused()))


def test_what_comes_before_the_steps_is_one_sentence():
    lines = comparison_table(compare([*repeats(workers=1), *fused(compile_s=1.5)]), 120).splitlines()

    (line,) = [line for line in lines if line.startswith("Apart from the measured steps")]
    assert "set-up up to 2 s" in line.replace("2.00", "2")
    assert "compilation in it 1.5" in line
    assert "first step up to" in line


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_wider_than_asked(width):
    text = comparison_table(compare([*repeats(), *fused(compile_s=1.5)]), width)
    assert max(map(len, text.splitlines())) <= width
