"""A forecast of several sizes: what follows from its predictions, and what it says about an epoch."""

from __future__ import annotations

import json

import pytest

from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.catalogue import device
from paceline.model.forecast.expenses import Expenses, Rates, expenses_of
from paceline.model.forecast.guess import guess
from paceline.model.forecast.predict import conditions_for, knee, worth_paying
from paceline.model.forecast.scaling import ScalingForecast, forecast
from paceline.model.forecast.what_if import parse_changes
from paceline.plan.vocabulary import SHARDED
from paceline.report.forecast import forecast_text
from paceline.workloads import load_workload

SIZES = (1, 2, 8)
RATES = Rates(epoch_samples=1000, price=3.6, power_w=500.0, memory_bytes=2.0**40)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return guess(load_workload("resnet50", {}), device("V100-SXM2"))


def forecast_of(calibration: Calibration, what_if: str = "", *, rank_changes: bool = False) -> ScalingForecast:
    sizes = [conditions_for(calibration, workers=workers, batch=32, bandwidth=1.25e9) for workers in SIZES]
    return forecast(calibration, sizes, parse_changes(what_if) if what_if else (), rank_changes=rank_changes)


def test_forecast_has_one_prediction_per_size_and_what_follows_from_them(calibration):
    made = forecast_of(calibration)

    assert [prediction.conditions.workers for prediction in made.predictions] == list(SIZES)
    assert (made.knee, made.worth_paying) == (knee(made.predictions), worth_paying(made.predictions))
    assert (made.without_change, made.helps_most) == ((), ())


def test_change_is_shown_beside_the_forecast_without_it(calibration):
    made = forecast_of(calibration, "compute=x2", rank_changes=True)

    assert all(
        after.step.value < before.step.value
        for before, after in zip(made.without_change, made.predictions, strict=True)
    )
    document = made.to_json(Rates())
    assert [row["workers"] for row in document["without_change"]] == list(SIZES)
    assert document["helps_most"][0] == {
        "change": made.helps_most[0].change,
        "step_ratio": made.helps_most[0].step_ratio,
    }


def test_epoch_costs_what_all_hosts_cost_for_its_time(calibration):
    last = forecast_of(calibration).predictions[-1]
    expenses = expenses_of(last, RATES)

    assert expenses.epoch.value == pytest.approx(1000 / last.throughput.value)
    assert expenses.cost.value == pytest.approx(expenses.epoch.value * 8 * 3.6 / 3600)
    assert expenses.energy.value == pytest.approx(expenses.epoch.value * 8 * 500)
    assert expenses.fits is True
    assert expenses_of(last, Rates(memory_bytes=1.0)).fits is False


def test_what_no_rate_is_given_for_is_left_out(calibration):
    row = forecast_of(calibration).predictions[0]

    assert expenses_of(row, Rates(price=3.6, power_w=500.0)) == Expenses()
    assert Expenses().to_json() == {}
    assert list(expenses_of(row, Rates(epoch_samples=1000, power_w=500.0)).to_json()) == ["epoch_s", "energy_j"]


def test_memory_that_is_not_known_does_not_say_whether_it_fits():
    sharded = guess(load_workload("resnet50", {}), device("V100-SXM2"), sharing=SHARDED)
    made = forecast_of(sharded)

    assert expenses_of(made.predictions[0], RATES).fits is None
    assert "Not known: the memory per worker" in forecast_text(made, RATES, 100)


def test_text_and_json_show_the_same_expenses(calibration):
    made = forecast_of(calibration)
    text, document = forecast_text(made, RATES, 200), made.to_json(RATES)

    assert json.loads(json.dumps(document)) == document
    assert all(header in text for header in ("epoch", "cost", "kWh", "fits"))
    for row in document["rows"]:
        assert f"{row['cost']['value']:.3g}" in text
        assert row["fits"] is True
