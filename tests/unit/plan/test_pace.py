"""What a lab's share of a core and its slow motion do to time, in one place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.plan.pace import Pace, at_true_pace
from records import make_trial

HOST = Path(__file__).parents[3] / "src" / "paceline"
KNOWS = {"plan/pace.py"}
"""Besides the lab itself, whose settings they are."""


def test_no_stage_reads_the_settings_of_the_lab_by_name() -> None:
    named = re.compile(r"""["'](?:core_share|dilation)["']""")
    places = {
        str(path.relative_to(HOST))
        for path in HOST.rglob("*.py")
        if named.search(path.read_text(encoding="utf-8")) and not path.is_relative_to(HOST / "sites" / "lab")
    }

    assert places == KNOWS


@pytest.mark.parametrize(
    ("told", "pace", "granted"),
    [
        ({}, Pace(), 1.0),
        ({"core_share": 0.5, "dilation": 1}, Pace(core_share=0.5, emulated=True), 0.5),
        ({"core_share": 0.5, "dilation": 4}, Pace(core_share=0.5, dilation=4.0, emulated=True), 0.125),
    ],
)
def test_pace_follows_from_options_or_from_what_the_site_tells(told, pace, granted) -> None:
    assert Pace.of(told) == pace
    assert Pace.of(told).granted == granted


def test_slow_motion_leaves_true_times_the_same() -> None:
    assert at_true_pace({"core_share": 0.5, "dilation": 4}) == {"core_share": 0.5}


def test_pace_is_no_content_of_a_trial_beside_the_options_of_its_site() -> None:
    trial = make_trial()
    slowed = replace(trial, cluster=replace(trial.cluster, options={"core_share": 0.5, "dilation": 4.0}))

    assert slowed.cluster.pace == Pace(core_share=0.5, dilation=4.0, emulated=True)
    assert "pace" not in slowed.to_json()["cluster"]
