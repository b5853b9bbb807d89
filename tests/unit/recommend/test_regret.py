"""The best is held out and has to be found again."""

from __future__ import annotations

import pytest

from advice import calibration_of, known_from, records_of, trial_of, true_step_s
from held_out import contests, held_out, regret
from paceline.recommend.candidates import measured
from paceline.spec.networks import NETWORKS

FAMILY = [trial_of(workers=workers, batch=batch) for workers in (1, 2, 4) for batch in (8, 16)]


def without(trials, **calibrated):
    """What is known without a trial, calibrated on the rest."""

    def known(held):
        rest = [trial for trial in trials if trial.id != held]
        return known_from(records_of(rest), [calibration_of(rest, **calibrated)])

    return known


def test_regret_is_the_time_that_is_lost():
    assert regret(100.0, 100.0) == 0.0
    assert regret(80.0, 100.0) == 0.25


def test_a_model_that_knows_the_truth_finds_the_best_again():
    known = known_from(records_of(FAMILY))
    rows, _ = measured(known)
    found = held_out("best", rows, known, without(FAMILY))

    assert found.best.trial.id == trial_of(workers=4, batch=16).id
    assert found.chosen is found.best
    assert (found.lost, found.told_apart, found.predicted, found.holds) == (0.0, False, True, True)
    assert found.to_json()["configurations"] == 6


def test_without_a_model_the_second_best_is_chosen_and_its_loss_is_told():
    known = known_from(records_of(FAMILY))
    rows, _ = measured(known)

    def nothing_modelled(held):
        return known_from(records_of([trial for trial in FAMILY if trial.id != held]))

    found = held_out("best", rows, known, nothing_modelled)
    second = trial_of(workers=4, batch=8)

    assert found.chosen.trial.id == second.id
    assert not found.predicted
    best = trial_of(workers=4, batch=16)
    assert found.lost == pytest.approx(2 * true_step_s(second) / true_step_s(best) - 1, rel=0.05)
    assert found.told_apart
    assert not found.holds


def test_what_may_not_be_ranked_is_no_contest():
    trials = [trial_of(), trial_of(framework="jax", environment="jax")]
    known = known_from(records_of(trials))
    rows, _ = measured(known)

    assert held_out("framework", rows, known, without(trials)) is None


def test_a_contest_is_the_best_on_a_network_or_the_best_at_a_size():
    networks = [
        trial_of(workers=hosts, hosts=hosts, network=NETWORKS[name] if hosts > 1 else None, knobs={"overlap": overlap})
        for hosts, name in ((1, "1GbE"), (2, "1GbE"), (2, "10GbE"))
        for overlap in (True, False)
    ]
    found = contests(measured(known_from(records_of(networks)))[0])

    assert len(found["best for mlp on 1GbE"]) == 4
    assert len(found["best for mlp on 10GbE"]) == 4
    assert sum(words.startswith("framework for mlp") for words in found) == 3
    alone = contests(measured(known_from(records_of(FAMILY)))[0])
    assert set(alone) == {"best for mlp"}
