"""Check keyword values that people or files gave against the function that will receive them.

The function's keyword-only signature is the schema: names, types and defaults are written once. This module serves
workload options and layer attributes, and must not know what either means.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeAlias, get_type_hints

from paceline.errors import SpecError, did_you_mean

OptionValue: TypeAlias = "int | float | bool | str | tuple[int, ...]"
"""A checked option of a workload or attribute of a layer: what JSON and TOML can both write."""

# How an error message names each type.
_TYPE_NAMES: dict[object, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    tuple[int, ...]: "a list of integers",
    tuple[int, int]: "a list of two integers",
}


def checked_options(
    function: Callable[..., object], options: Mapping[str, object], *, owner: str, word: str
) -> dict[str, OptionValue]:
    """Return `options` ready to pass on: lists as tuples, whole numbers as float where one is wanted.

    Args:
        function: its keyword-only parameters define what is allowed.
        options: the values as a study or a file gives them.
        owner: what the options belong to, for messages, such as "workload 'mlp'".
        word: what a single value is called in messages, "option" or "attribute".

    Raises:
        SpecError: an unknown name, with the nearest known one, a missing one, or a value of the wrong type.
    """
    keywords = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    for name in options:
        if name not in keywords:
            raise SpecError(f"{owner} has no {word} '{name}'", hint=did_you_mean(str(name), keywords))
    for name, parameter in keywords.items():
        if parameter.default is inspect.Parameter.empty and name not in options:
            raise SpecError(f"{owner} needs the {word} '{name}'")
    types = get_type_hints(function)
    return {name: _checked(value, types[name], f"{owner}: {word} '{name}'") for name, value in options.items()}


def _checked(value: object, expected: object, where: str) -> OptionValue:
    # `type() is` and not only isinstance: True is an int to Python but not to a reader.
    if expected is float and isinstance(value, (int, float)) and type(value) in (int, float):
        return float(value)
    if expected in (int, bool, str) and isinstance(value, (int, str)) and type(value) is expected:
        return value
    if expected in (tuple[int, ...], tuple[int, int]) and isinstance(value, (list, tuple)):
        right_length = expected == tuple[int, ...] or len(value) == 2
        if right_length and all(type(item) is int for item in value):
            return tuple(value)
    raise SpecError(f"{where} must be {_TYPE_NAMES[expected]}, not {value!r}")
