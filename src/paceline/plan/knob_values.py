"""The values of a framework's knobs and of a site's options, and readers that return them with their type.

A study's values are checked when a trial is planned (`capabilities.Knob.parse`), so a reader that meets a value of
another type has found a defect of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

KnobValue: TypeAlias = "bool | int | float | str | None"
"""None: the default of the framework or of the site itself."""
KnobValues: TypeAlias = "Mapping[str, KnobValue]"
"""Name → value of every knob, defaults included."""


def flag(values: KnobValues, name: str) -> bool:
    """The value of a knob that is true or false."""
    value = values[name]
    assert isinstance(value, bool), f"{name} should be true or false, not {value!r}"
    return value


def integer(values: KnobValues, name: str) -> int:
    """The value of a knob that is a whole number."""
    value = optional_integer(values, name)
    assert value is not None, f"{name} should be a whole number, and is not set"
    return value


def optional_integer(values: KnobValues, name: str) -> int | None:
    """The value of a knob that is a whole number or not set."""
    value = values.get(name)
    assert value is None or isinstance(value, int), f"{name} should be a whole number, not {value!r}"
    return value


def number(values: KnobValues, name: str) -> float:
    """The value of a knob that is a number."""
    value = optional_number(values, name)
    assert value is not None, f"{name} should be a number, and is not set"
    return value


def optional_number(values: KnobValues, name: str) -> float | None:
    """The value of a knob that is a number or not set."""
    value = values.get(name)
    assert value is None or isinstance(value, (int, float)), f"{name} should be a number, not {value!r}"
    return value


def text(values: KnobValues, name: str) -> str:
    """The value of a knob that is a text."""
    value = optional_text(values, name)
    assert value is not None, f"{name} should be a text, and is not set"
    return value


def optional_text(values: KnobValues, name: str) -> str | None:
    """The value of a knob that is a text or not set."""
    value = values.get(name)
    assert value is None or isinstance(value, str), f"{name} should be a text, not {value!r}"
    return value
