"""Colours can be read in both modes: WCAG 2.2 AA, by its own formula."""

from __future__ import annotations

import pytest

from paceline.report.palette import EDGES, FILLS, GROUND, INK, LINES, PAINTS, PAPER, style

MODES = ("light", "dark")


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["ink", "soft", "link", "doubt"])
@pytest.mark.parametrize("behind", ["paper", "panel"])
def test_text_is_readable_on_the_paper_and_behind_code(mode, name, behind):
    assert contrast(getattr(GROUND[name], mode), getattr(GROUND[behind], mode)) >= 4.5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*LINES, *(f"{phase}-edge" for phase in EDGES)])
def test_lines_that_mean_something_stand_out(mode, name):
    assert contrast(getattr(PAINTS[name], mode), getattr(GROUND[PAPER], mode)) >= 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("phase", FILLS)
def test_labels_are_readable_inside_bars(mode, phase):
    assert contrast(getattr(GROUND[INK], mode), getattr(FILLS[phase], mode)) >= 4.5


def test_every_paint_has_both_modes_and_a_class_and_paper_is_light():
    css = style()

    for name, shades in PAINTS.items():
        assert f"--{name}:{shades.light};" in css
        assert f"--{name}:{shades.dark};" in css
        assert f".f-{name}{{fill:var(--{name})}}" in css
    assert "@media screen and (prefers-color-scheme:dark)" in css
