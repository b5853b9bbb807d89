"""`predict --what-if` of hosts that differ and links that are shared: what may be asked, and how the answer is labelled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.errors import PacelineError
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.catalogue import device
from paceline.model.forecast.expenses import Rates
from paceline.model.forecast.guess import guess
from paceline.model.forecast.predict import Prediction, conditions_for, predict
from paceline.model.forecast.scaling import forecast
from paceline.model.forecast.what_if import changed, parse_changes
from paceline.plan.vocabulary import SHARDED
from paceline.report.forecast import forecast_text
from paceline.workloads import load_workload


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return guess(load_workload("resnet50", {}), device("V100-SXM2"))


def predicted(calibration: Calibration, what_if: str, workers: int = 8) -> Prediction:
    asked = conditions_for(calibration, workers=workers, batch=32, bandwidth=1.25e9)
    return predict(*changed(calibration, asked, parse_changes(what_if) if what_if else []))


SIMULATED = ("slow-host=x2", "slow_host=2", "unequal-hosts=1/1.5", "oversubscription=x4", "jobs=2")


@pytest.mark.parametrize("what_if", SIMULATED)
def test_simulated_step_is_called_simulated_and_takes_longer(calibration, what_if):
    usual, simulated = predicted(calibration, ""), predicted(calibration, what_if)

    assert usual.by == "guessed"
    assert simulated.by == simulated.to_json()["by"] == "simulated"
    assert simulated.step.low <= simulated.step.value <= simulated.step.high
    assert simulated.step.value > usual.step.value
    assert simulated.efficiency.value < usual.efficiency.value


@pytest.mark.parametrize("what_if", ["jobs=1", "oversubscription=x1"])
def test_change_that_changes_nothing_needs_no_simulation(calibration, what_if):
    assert predicted(calibration, what_if).by == "guessed"


def test_one_slow_host_holds_all_back(calibration):
    slow = predicted(calibration, "slow-host=x3")

    assert slow.bottleneck == "straggler wait"


def test_efficiency_refers_to_a_usual_host_alone(calibration):
    assert predicted(calibration, "slow-host=x2", workers=1).efficiency.value == pytest.approx(0.5)


def test_simulated_changes_come_together_and_with_others(calibration):
    both = predicted(calibration, "slow-host=x2,oversubscription=x4,compression=fp16")

    assert both.conditions.slowness == (2.0,)
    assert both.conditions.oversubscription == 4.0
    assert both.step.value > predicted(calibration, "slow-host=x2,compression=fp16").step.value


@pytest.mark.parametrize(
    "what_if",
    [
        "slow-host=x0.5",
        "slow-host=fast",
        "slow-host=xnan",
        "slow-host=xinf",
        "unequal-hosts=1",
        "unequal-hosts=1/0",
        "unequal-hosts=1/-2",
        "unequal-hosts=1//2",
        "oversubscription=x0",
        "oversubscription=10Gbit",
        "jobs=0",
        "jobs=x2",
        "jobs=1.5",
        "jobs=65",
    ],
)
def test_value_that_makes_no_sense_is_refused(what_if):
    with pytest.raises(PacelineError, match="should be"):
        parse_changes(what_if)


def test_hosts_are_made_unequal_once(calibration):
    with pytest.raises(PacelineError, match="already unequal"):
        predicted(calibration, "slow-host=x2,unequal-hosts=1/2")


@pytest.mark.parametrize("what_if", SIMULATED)
def test_strategy_that_does_not_average_gradients_is_refused(calibration, what_if):
    with pytest.raises(PacelineError, match="sharded"):
        predicted(replace(calibration, sharing=SHARDED), what_if)


@pytest.mark.parametrize(
    ("what_if", "words"),
    [
        ("slow-host=x2", "one host that computes × 2 slower"),
        ("unequal-hosts=1/1.5", "hosts that compute slower by × 1, × 1.5, in turn"),
        ("oversubscription=x4", "carries 1/4 of what they can send"),
        ("jobs=3", "3 equal jobs on the same links"),
    ],
)
def test_text_says_what_was_simulated(calibration, what_if, words):
    asked = conditions_for(calibration, workers=8, batch=32, bandwidth=1.25e9)
    text = forecast_text(forecast(calibration, [asked], parse_changes(what_if)), Rates(), 160)

    assert "simulated, 90 % intervals" in text
    assert words in text
