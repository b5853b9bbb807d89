from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.report.svg import Area, Scale, apart, dot, heading, mark, picture, text


def test_scale_goes_from_end_to_end_and_by_doublings_where_asked():
    linear, doubling = Scale(0, 10, 100, 200), Scale(1, 4, 0, 100, log=True)

    assert [linear(value) for value in (0, 5, 10)] == [100, 150, 200]
    assert [doubling(value) for value in (1, 2, 4)] == pytest.approx([0, 50, 100])


@given(low=st.floats(1e-6, 1e6), factor=st.floats(1.001, 1e9), log=st.booleans())
def test_ticks_are_few_grow_and_lie_inside(low, factor, log):
    scale = Scale(low, low * factor, 0, 100, log=log)
    ticks = scale.ticks()

    assert 1 <= len(ticks) <= 8
    assert ticks == sorted(set(ticks))
    room = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - room <= tick <= scale.high + room for tick in ticks)


@given(st.lists(st.floats(0, 500), min_size=1, max_size=12))
def test_labels_do_not_cover_each_other_and_keep_their_order(places):
    moved = apart(places, 14)
    order = sorted(range(len(places)), key=lambda at: places[at])

    assert all(moved[b] - moved[a] >= 14 - 1e-6 for a, b in pairwise(order))


def test_paints_are_attributes_for_any_program_and_classes_for_a_page():
    assert (
        mark("rect", fill="ink", stroke="none", kind="bar") == '<rect class="bar f-ink" fill="#1c2126" stroke="none"/>'
    )


def test_words_of_others_cannot_leave_their_place():
    hostile = '"><script>alert(1)</script>'
    drawn = picture(hostile, 10, [text(0, 0, hostile), dot(0, 1, 1, data_row=hostile)])

    assert "<script" not in drawn
    root = ET.fromstring(drawn)
    assert root.get("aria-label") == hostile


@pytest.mark.parametrize("index", range(7))
def test_every_marker_is_drawn(index):
    assert mark("g", dot(index, 10, 10)).count("fill=") == 1


def test_long_name_is_shortened_before_it_runs_into_the_value():
    area = Area(left=0, top=0, right=300, bottom=10)
    name, value = heading(area, 5, "x" * 200, "123 (120–126)")

    assert "…" in name
    assert "123 (120–126)" in value
    assert "…" not in heading(area, 5, "short", "123")[0]
