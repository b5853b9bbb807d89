from __future__ import annotations

import pytest

from paceline.report.table import Column, draw

NAMES = Column(
    header="configuration",
    cells=("1 worker", "batch 8 per worker · 2 workers on 2 hosts · overlap=off"),
    right=False,
    wraps=True,
)
NUMBERS = [
    Column(header="samples/s", cells=("171 (161–183)", "298 (249–356)")),
    Column(header="step time", cells=("93.3 ms", "107 ms")),
    Column(header="efficiency", cells=("base", "87 % (77–98)")),
]


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_number_is_cut_and_no_line_too_wide(width: int) -> None:
    text = draw(NAMES, NUMBERS, width)

    assert all(cell in text for column in NUMBERS for cell in (column.header, *column.cells))
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_long_names_are_wrapped_before_numbers_go_below() -> None:
    assert draw(NAMES, NUMBERS, 160).count("configuration") == 1
    assert draw(NAMES, NUMBERS, 60).count("configuration") == 1
    assert draw(NAMES, NUMBERS, 40).count("configuration") > 1


def test_numbers_stand_at_the_right_and_words_at_the_left() -> None:
    header, _, first, *_ = draw(NAMES, NUMBERS, 160).splitlines()

    assert first.startswith("1 worker ")
    assert header.endswith("efficiency")
    assert first.endswith("        base")


def test_square_brackets_are_words_and_not_markup() -> None:
    names = Column(header="", cells=("[1]", "[bold]"), right=False)

    assert "[bold]" in draw(names, [Column(header="n", cells=("1", "2"))], 80)


def test_number_that_is_wider_than_the_page_is_kept_whole() -> None:
    number = "1" * 50

    assert number in draw(NAMES, [Column(header="n", cells=(number, "2"))], 40)


def test_names_are_wrapped_between_their_parts_where_these_fit() -> None:
    text = draw(NAMES, NUMBERS, 70)

    assert "\n  2 workers on 2 hosts ·\n  overlap=off" in "\n".join(line.rstrip() for line in text.splitlines())
    # A part that is too long for its column is wrapped, too.
    long = Column(header="", cells=("tensorflow multi_worker_mirrored · 1 worker",), right=False, wraps=True)
    lines = draw(long, [Column(header="n", cells=("99",))], 29).splitlines()[2:]
    assert [line.removesuffix("99").rstrip() for line in lines] == [
        "tensorflow",
        "  multi_worker_mirrored ·",
        "  1 worker",
    ]
