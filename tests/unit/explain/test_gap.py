"""Why one trial is slower than another."""

from __future__ import annotations

import pytest

from paceline.explain.finding import COPY
from paceline.explain.gap import Side, gap_between, layer_times
from paceline.explain.spent import EXCHANGE, Spent
from paceline.explain.without import ModelledTrial
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import as_vector
from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, INPUT, OVERHEAD, STRAGGLER
from paceline.model.fitting.calibration import Calibration, Hull
from paceline.model.fitting.fit import family_of
from paceline.stats.known_by import MEASURED, MODELLED
from records import make_record, make_trial

VECTOR = as_vector({"forward_s": 1e-2, "backward_s": 2e-2, "byte_s": 1e-9})
SETTING = ModelledTrial(
    calibration=Calibration(
        family=family_of(make_trial(), "here"),
        by=MODELLED,
        vector=VECTOR,
        low=VECTOR,
        high=VECTOR,
        draws=VECTOR[None],
        hull=Hull(workers=(1, 2), hosts=(1, 1), batch=(8, 8), bandwidth=None),
        residual=0.02,
        held_out=3,
        noise=0.01,
    ),
    conditions=Conditions(workers=2, hosts=1, batch=8.0, messages=(1e6,)),
)


def side(label, layers=None, **seconds):
    whole = {
        INPUT: 0.0,
        COPY: 0.0,
        COMPUTE: 30e-3,
        EXCHANGE: 10e-3,
        CONTENTION: 0.0,
        OVERHEAD: 0.0,
        STRAGGLER: 0.0,
        **seconds,
    }
    spent = Spent(seconds=whole, spread=dict.fromkeys(whole, 0.0), by=MEASURED, slowest=None, runs=("run",))
    return Side(label=label, spent=spent, setting=SETTING, layers=layers or {})


def test_parts_of_a_difference_sum_up_to_one():
    gap = gap_between(side("b", **{COMPUTE: 50e-3, EXCHANGE: 5e-3}), side("a"), ["layout: nhwc | nchw"])

    assert sum(gap.parts.values()) == pytest.approx(1.0)
    assert gap.parts[COMPUTE] == pytest.approx(20 / 15)
    assert gap.parts[BANDWIDTH] == pytest.approx(-5 / 15)
    assert gap.ratio == pytest.approx(55 / 40)
    assert gap.sentence == (
        "b takes 15 ms longer per step than a: 100% of that is compute; they differ in layout: nhwc | nchw"
    )


def test_layers_that_make_most_of_it_come_first():
    layers = {"conv1": 1e-3, "conv2": 5e-3, "fc": 1e-3}
    slower = side("b", {"conv1": 2e-3, "conv2": 15e-3, "fc": 0.5e-3}, **{COMPUTE: 45e-3})
    gap = gap_between(slower, side("a", layers), [])

    assert [layer.layer for layer in gap.layers] == ["conv2", "conv1", "fc"]
    assert "most of it in conv2" in gap.sentence


def test_nothing_is_said_of_one_that_is_not_slower():
    assert gap_between(side("b"), side("a"), []) is None


def test_layer_times_are_means_of_forward_passes():
    seconds = layer_times([make_record(workers=2, layers=True), make_record(workers=2)])

    # Rank 0 takes 1 ms and rank 1 takes 2 ms, for every layer.
    assert seconds == {"conv1": pytest.approx(1.5e-3), "fc": pytest.approx(1.5e-3)}
