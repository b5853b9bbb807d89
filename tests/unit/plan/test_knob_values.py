import pytest

from paceline.plan.knob_values import (
    flag,
    integer,
    number,
    optional_integer,
    optional_number,
    optional_text,
    text,
)

VALUES = {"overlap": True, "accumulate": 4, "alpha_s": 5e-5, "hook": "fp16", "servers": None, "bucket_bytes": None}


def test_each_reader_returns_the_value_with_its_type():
    assert flag(VALUES, "overlap") is True
    assert integer(VALUES, "accumulate") == 4
    assert number(VALUES, "alpha_s") == 5e-5
    assert number(VALUES, "accumulate") == 4
    assert text(VALUES, "hook") == "fp16"


def test_a_knob_that_is_absent_or_not_set_is_none():
    assert optional_integer(VALUES, "servers") is None
    assert optional_number(VALUES, "bucket_bytes") is None
    assert optional_text(VALUES, "interface") is None


@pytest.mark.parametrize(
    "reader, name, message",
    [
        (flag, "accumulate", "accumulate should be true or false, not 4"),
        (integer, "hook", "hook should be a whole number, not 'fp16'"),
        (integer, "servers", "servers should be a whole number, and is not set"),
        (integer, "alpha_s", "alpha_s should be a whole number, not 5e-05"),
        (number, "hook", "hook should be a number, not 'fp16'"),
        (number, "bucket_bytes", "bucket_bytes should be a number, and is not set"),
        (text, "overlap", "overlap should be a text, not True"),
    ],
)
def test_a_value_of_another_type_is_a_defect(reader, name, message):
    with pytest.raises(AssertionError, match=message):
        reader(VALUES, name)
