"""Phases as text: what is derived is called so, and nothing is shown as a negative time."""

from __future__ import annotations

import re

import pytest

from paceline.compare import compare
from paceline.report.glyphs import for_encoding
from paceline.report.phases import phase_table
from paceline.report.text import WIDTH, comparison_table
from records import fused_record, make_record

SECONDS = {"forward": 0.018, "backward": 0.034, "update": -0.002}


def whole_table(comparison, width=WIDTH):
    """Phases are among the details."""
    return comparison_table(comparison, width, details=True)


def fused(count=3, **changes):
    return [fused_record(repeat=repeat, **({"seconds": SECONDS} | changes)) for repeat in range(count)]


def repeats(count=3, **changes):
    return [make_record(repeat=repeat, **changes) for repeat in range(count)]


def test_derived_phases_are_called_derived_and_by_what():
    text = whole_table(compare(fused()))

    assert "inside the fused step, derived\n" in text
    assert "derived by differences of separate programs\n" in text
    assert "forward" in text
    assert "█ data  ▓ step\nphases by timers\n" in text


def test_negative_time_is_below_noise():
    text = whole_table(compare(fused()))

    assert "≈ 0 (below noise)" in text
    assert "-2" not in text
    assert "~ 0 (below noise)" in for_encoding(text, "ascii")


def test_rows_with_phases_of_different_origin_say_so_each():
    text = whole_table(compare([*repeats(phases_by="law", simulated=True), *fused()]))

    assert re.search(r"phases by a law: torch ddp\b.*; all others by timers", " ".join(text.split()))


def test_exchange_and_waiting_are_two_numbers_where_ranks_timed_them():
    text = whole_table(compare(repeats()))

    assert re.search(r"communication \(transfer\) +waiting", text)
    assert "waiting" not in whole_table(compare(repeats(workers=1)))
    assert "waiting" not in whole_table(compare(fused()))


def test_what_comes_before_the_steps_is_one_sentence():
    line = apart_from_steps(*repeats(workers=1), *fused(compile_s=1.5))

    assert "set-up up to 2 s" in line.replace("2.00", "2")
    assert "of which compilation 1.5" in line
    assert "(jax shard_map · 2 workers), first step up to" in line


def test_compilation_is_in_the_set_up_or_in_the_first_step():
    line = apart_from_steps(*repeats(facts={"compile_in_first_step_s": 0.2}))

    assert line.count("of which compilation") == 1
    assert re.search(r"first step [^,]+, of which compilation 200 ms\.", line)


def apart_from_steps(*records):
    text = whole_table(compare(records))
    (paragraph,) = [one for one in text.split("\n\n") if one.startswith("Outside the measured steps")]
    return " ".join(paragraph.split())


def test_phases_that_cannot_be_told_apart_are_noted_under_the_table_that_shows_them():
    mixed = {"phases_mixed": {"phases": ["update", "communication"], "why": "the store updates"}}
    note = "communication and update cannot be told apart (the store updates): "

    timed = " ".join(whole_table(compare([*repeats(facts=mixed), *fused()]), 200).split())
    derived = " ".join(whole_table(compare([*repeats(), *fused(facts=mixed)]), 200).split())

    assert timed.count(note) == derived.count(note) == 1
    assert f"phases by timers {note}torch ddp" in timed
    assert f"derived by differences of separate programs {note}jax shard_map" in derived
    assert "told apart (" not in whole_table(compare([*repeats(), *fused()]))


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_is_wider_than_asked(width):
    text = whole_table(compare([*repeats(), *fused(compile_s=1.5)]), width)
    assert max(map(len, text.splitlines())) <= width


def test_bars_are_shorter_where_numbers_need_the_room():
    records = [
        make_record(workers=n, knobs={"overlap": k}, repeat=r) for n in (1, 2) for k in (0.0, 0.5) for r in (0, 1, 2)
    ]
    comparison = compare(records)
    names = {row.key: row.label for row in comparison.rows}

    for width in (60, 80, 120):
        text = phase_table(comparison, names, width)
        assert max(map(len, text.splitlines())) <= width
        assert text.count("configuration") == 1
