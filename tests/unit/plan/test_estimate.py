"""How long a run is said to take before it was run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paceline.plan.estimate import make_estimate
from paceline.plan.expand import expand
from paceline.plan.trial import Trial
from paceline.spec.networks import read_network
from paceline.workloads import load_workload
from plans import CAPABILITIES, catalog, study


def trial(*, workers: int = 1, network: str | None = None, **options: Any) -> Trial:
    (one,) = expand(study({"workers_per_host": workers}, model="alexnet"), catalog())
    link = read_network(network) if network else None
    return replace(one.trial, cluster=replace(one.trial.cluster, network=link, options=options))


def estimate(one: Trial, seen: dict[str, float] | None = None) -> float:
    return make_estimate({"torch": CAPABILITIES}, load_workload, seen or {})(one)


def test_what_was_run_before_is_remembered() -> None:
    assert estimate(trial(), {trial().id: 42.0}) == 42.0


def test_half_a_core_and_slow_motion_take_twice_as_long() -> None:
    alone = estimate(trial())

    assert estimate(trial(core_share=0.5, dilation=1.0)) == pytest.approx(2 * alone)
    assert estimate(trial(core_share=1.0, dilation=2.0)) == pytest.approx(2 * alone)


def test_an_exchange_takes_what_its_link_needs_whatever_the_share_of_a_core() -> None:
    steps = trial().measure.warmup_steps + trial().measure.steps
    bytes_ = load_workload("alexnet").num_parameters * 4
    slow, fast = (estimate(trial(workers=2, network=name, core_share=0.5)) for name in ("100Mbit", "1GbE"))

    assert slow - fast == pytest.approx(steps * bytes_ * (1 / 12.5e6 - 1 / 125e6))
