from __future__ import annotations

import math
from dataclasses import replace

import pytest

from paceline.errors import PacelineError
from paceline.explain.finding import promised
from paceline.recommend.objective import GOALS, Bound, Prices, Within, parse_within, wish_for

SPEED = replace(promised(100.0, 80.0, 125.0), unit="samples/s")
PRICES = Prices(epoch=3600.0, price=2.0, power=300.0)


def test_throughput_is_what_it_is():
    assert GOALS["throughput"].value(SPEED, 4, Prices()) == SPEED


@pytest.mark.parametrize(
    ("goal", "value", "low", "high"),
    [
        ("epoch-time", 36.0, 28.8, 45.0),
        # 2 an hour, 4 hosts, a hundredth of an hour.
        ("cost", 0.08, 0.064, 0.1),
        ("energy", 300.0 * 4 * 36, 300.0 * 4 * 28.8, 300.0 * 4 * 45),
    ],
)
def test_what_is_waited_and_paid_for_turns_the_interval_round(goal, value, low, high):
    found = GOALS[goal].value(SPEED, 4, PRICES)

    assert (found.value, found.low, found.high) == pytest.approx((value, low, high))
    assert not GOALS[goal].larger


def test_only_what_is_paid_for_each_host_is_worth_less_on_more_hosts():
    assert [GOALS[name].worth(4, 2) for name in ("throughput", "epoch-time", "cost", "energy")] == [1, 1, 0.5, 0.5]


@pytest.mark.parametrize(
    ("goal", "text"),
    [
        ("throughput", "100 (80–125) samples/s"),
        ("epoch-time", "36 s (28.8 s–45 s) per epoch"),
        ("cost", "0.02 (0.016–0.025) per epoch"),
        ("energy", "0.003 (0.0024–0.00375) kWh per epoch"),
    ],
)
def test_values_are_told_with_interval_and_unit(goal, text):
    assert GOALS[goal].text(GOALS[goal].value(SPEED, 1, PRICES)) == text


@pytest.mark.parametrize(
    ("goal", "prices", "words"),
    [
        ("epoch-time", Prices(), "--epoch SAMPLES"),
        ("cost", Prices(epoch=1.0), "--price P"),
        ("cost", Prices(price=1.0), "--epoch SAMPLES"),
        ("energy", Prices(epoch=1.0, price=1.0), "--power W"),
    ],
)
def test_a_goal_without_its_price_says_what_to_type(goal, prices, words):
    with pytest.raises(PacelineError, match=f"--goal {goal}: needs") as error:
        wish_for(goal, prices)
    assert f"add {words}" in error.value.hint


def test_a_limit_without_its_price_says_what_to_type():
    with pytest.raises(PacelineError, match="budget<=5: needs --epoch SAMPLES and --price P"):
        wish_for("throughput", Prices(), "budget<=5")
    with pytest.raises(PacelineError, match="deadline<=1h: needs --epoch"):
        wish_for("throughput", Prices(), "deadline<=1h")


@pytest.mark.parametrize(
    ("goal", "allow", "words"), [("speed", (), "no such goal"), ("throughput", ("roughly",), "no such class")]
)
def test_a_word_that_nobody_knows_names_the_known_ones(goal, allow, words):
    with pytest.raises(PacelineError, match=words) as error:
        wish_for(goal, Prices(), allow=allow)
    assert "known: " in error.value.hint


def test_a_price_below_zero_is_refused():
    with pytest.raises(PacelineError, match="--price -1: should be above zero"):
        wish_for("throughput", Prices(price=-1.0))


def test_limits_are_read_as_they_are_written():
    found = parse_within(
        "workers<=8, hosts<=4,memory<=16GB,framework=torch|jax,strategy=ddp,budget<=100,deadline<=12h,batch=16|32,"
        "threads<=2,model=resnet44,network=1GbE"
    )

    assert found.workers == Bound(most=8)
    assert found.hosts == Bound(most=4)
    assert found.batch == Bound(among=(16, 32))
    assert found.threads == Bound(most=2)
    assert found.framework == ("torch", "jax")
    assert (found.strategy, found.model, found.network) == (("ddp",), ("resnet44",), ("1GbE",))
    assert (found.memory, found.budget, found.deadline) == (16e9, 100.0, 43200.0)
    assert found.words["hosts"] == "hosts<=4"


def test_no_limit_allows_everything():
    assert parse_within("") == Within()
    assert Bound().allows(math.inf)
    assert not Bound().given


def test_a_limit_holds_what_it_says():
    assert Bound(most=8).allows(8)
    assert not Bound(most=8).allows(9)
    assert Bound(among=(2, 6)).allows(6)
    assert not Bound(among=(2, 6)).allows(4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wokers<=8", "no such limit"),
        ("workers", "no value"),
        ("workers<=", "no value"),
        ("workers<=many", "whole number"),
        ("workers<=0", "at least 1"),
        ("workers<=2|4", "one number"),
        ("framework<=torch", "takes names"),
        ("memory=16GB", "only a largest value"),
        ("memory<=16", "has no unit"),
        ("deadline<=soon", "not a number"),
        ("budget<=lots", "could not convert"),
        ("budget<=-1", "above zero"),
        ("workers<=8,workers<=4", "given twice"),
    ],
)
def test_a_limit_that_nobody_understands_says_what_to_write(text, words):
    with pytest.raises(PacelineError, match=words) as error:
        parse_within(text)
    assert error.value.hint


def test_the_nearest_limit_is_named():
    with pytest.raises(PacelineError) as error:
        parse_within("wokers<=8")
    assert "did you mean 'workers'" in error.value.hint
