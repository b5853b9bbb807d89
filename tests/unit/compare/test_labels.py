"""What sets rows apart is in their labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from paceline.compare.labels import label_rows
from paceline.compare.verdicts import question
from paceline.plan.trial import Trial
from records import make_trial


def in_lab(**options: Any) -> Trial:
    trial = make_trial(site="lab")
    return replace(trial, cluster=replace(trial.cluster, options={"topology": "switch", "dilation": 1.0} | options))


def test_settings_of_the_site_that_differ_are_in_the_labels() -> None:
    labels = label_rows([in_lab(), in_lab(dilation=2.0)], [None, None])

    assert [label.endswith(end) for label, end in zip(labels.each, ("dilation=1", "dilation=2"), strict=True)] == [
        True
    ] * 2
    assert not any("topology" in label for label in labels.each)


def test_hosts_of_another_dilation_are_another_question() -> None:
    assert question(in_lab()) == question(in_lab())
    assert question(in_lab()) != question(in_lab(dilation=2.0))
