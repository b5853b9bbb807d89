"""Every way in which a framework gives up exactness declares its bound, with the reason."""

from __future__ import annotations

import pytest

from paceline.frameworks import FRAMEWORKS, load_framework

CAPABILITIES = {name: load_framework(name).capabilities for name in FRAMEWORKS}


def choices(able):
    """The defaults, and every single choice of a knob."""
    defaults = {name: knob.default for name, knob in able.knobs.items()}
    yield defaults
    for name, knob in able.knobs.items():
        for value in knob.choices:
            yield {**defaults, name: value}


@pytest.mark.parametrize("name", [name for name, able in CAPABILITIES.items() if able.trains])
def test_whatever_makes_a_strategy_approximate_has_a_bound_with_its_reason(name):
    able = CAPABILITIES[name]
    for strategy in able.strategies:
        for knobs in choices(able):
            given_up = able.approximations(strategy, knobs)

            assert bool(given_up) or able.class_of(strategy, knobs) != "approximate"
            assert all(approximation.reason and approximation.because for approximation in given_up)


def test_local_steps_from_the_start_have_no_bounded_gradient():
    able = CAPABILITIES["torch"]
    knobs = {name: knob.default for name, knob in able.knobs.items()}

    (late,) = able.approximations("post_local_sgd", knobs)
    (early,) = able.approximations("post_local_sgd", {**knobs, "local_sgd_start": 0})

    assert (late.gradient, early.gradient) == (0.0, None)
