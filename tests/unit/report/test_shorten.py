"""Of a study that is too large for a page, whole families are shown, the fastest of each question first."""

from __future__ import annotations

import pytest

from paceline.compare import compare, families
from paceline.report.html import page
from paceline.report.shorten import explained, in_detail, shortened
from records import make_record
from report_data import make_report


def records(settings, *, batches=(8, 16), workers=(1, 2), repeats=2):
    """Settings whose step grows with their number, so that the first is the fastest."""
    return [
        make_record(knobs={"k": k}, batch=batch, workers=size, step_s=0.05 + 0.001 * k, steps=5, repeat=repeat)
        for k in range(settings)
        for batch in batches
        for size in workers
        for repeat in range(repeats)
    ]


@pytest.fixture(scope="module")
def large():
    return compare(records(20))


def test_what_fits_on_a_page_is_left_alone():
    comparison = compare(records(3))

    assert shortened(comparison) is comparison


def test_whole_families_are_kept_and_the_fastest_of_each_question_first(large):
    short = shortened(large, most=12)

    assert {row.knobs["k"] for row in short.rows} == {0, 1, 2}
    assert {row.batch_per_worker for row in short.rows} == {8, 16}
    assert {len(family.rows) for family in families(short)} == {2}


def test_rows_keep_their_order_and_pairs_speak_of_rows_that_are_shown(large):
    short = shortened(large, most=12)
    keys = [row.key for row in short.rows]

    assert keys == [row.key for row in large.rows if row.key in set(keys)]
    assert short.verdicts
    assert {key for pair in short.verdicts for key in (pair.a, pair.b)} <= set(keys)


def test_a_note_says_what_is_left_out_and_how_to_see_it(large):
    (note,) = [note for note in shortened(large, most=12).notes if note.code == "shortened"]

    assert "12 of 80 rows" in note.message
    assert "--json" in note.hint


def test_a_few_families_are_all_looked_at_and_of_many_the_fastest(large):
    few = compare(records(3))
    assert {row.workers for row in in_detail(few)} == {2}
    assert len(in_detail(few)) == 6

    assert len(in_detail(large)) <= 12
    assert {row.knobs["k"] for row in in_detail(large)} == {0}


def test_every_trial_of_a_small_study_is_explained_and_of_a_large_one_those_in_detail(large):
    assert explained(compare(records(3))) is None
    assert explained(large) == {row.trial for row in large.rows if row.knobs["k"] == 0}


def test_the_answer_on_a_short_page_is_that_of_all_rows():
    many = compare(records(60, workers=(1, 2), batches=(8, 16), repeats=2))

    text = page(make_report(results=many, explanations=(), timelines={}, resources={}))

    assert "is the fastest of 60 in all 4 comparisons" in text
    assert "200 of 240 rows are shown" in text
