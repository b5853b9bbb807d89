from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from paceline.errors import SpecError
from paceline.plan import schedule
from paceline.plan.expand import Expanded, expand
from plans import catalog, study


def expanded() -> list[Expanded]:
    return expand(study({"workers_per_host": [1, 2]}), catalog())


def test_repeats_are_interleaved_and_every_other_round_runs_backwards() -> None:
    plan = schedule(study({"workers_per_host": [1, 2]}), expanded(), estimate=lambda _: 1.0)

    assert [(r.trial.workers, r.repeat) for r in plan.runs] == [
        (1, 0),
        (2, 0),
        (2, 1),
        (1, 1),
        (1, 2),
        (2, 2),
    ]
    assert plan.estimate_s == 6.0


def test_recorded_runs_are_not_planned_again_failed_ones_only_on_request() -> None:
    trials = expanded()
    one, two = (e.trial.id for e in trials)
    done = {(one, 0): "ok", (two, 0): "failed"}

    kept = schedule(study(), trials, estimate=lambda _: 1.0, done=done)
    retried = schedule(
        study(),
        trials,
        estimate=lambda _: 1.0,
        done=done,
        attempts={(one, 0): 1, (two, 0): 1},
        retry={"failed"},
    )

    assert len(kept.runs) == 4
    assert len(kept.done) == 2
    assert [(r.trial.id, r.repeat, r.attempt) for r in retried.runs if r.repeat == 0] == [(two, 0, 1)]


def test_a_model_may_be_repeated_less_than_the_study_says() -> None:
    mine = study(model=["mlp", "lenet5"], lenet5={"repeats": 1})
    plan = schedule(mine, expand(mine, catalog()), estimate=lambda _: 1.0)

    assert Counter(run.trial.workload.model for run in plan.runs) == {"mlp": 3, "lenet5": 1}


def test_only_a_study_repeats_until_it_knows_enough() -> None:
    with pytest.raises(SpecError, match=r"workload\.mlp\.repeats"):
        study(mlp={"repeats": {"min": 2, "max": 5, "until": "2%"}})


def test_same_arguments_same_plan() -> None:
    plans = [schedule(study(), expanded(), estimate=lambda _: 1.0) for _ in range(2)]

    assert plans[0] == plans[1]


def test_proposal_adds_repeats_to_the_trials_it_names_only() -> None:
    trials = expanded()
    one = trials[0].trial.id
    done = {(e.trial.id, k): "ok" for e in trials for k in range(3)}
    plan = schedule(study(), trials, estimate=lambda _: 1.0, done=done, repeats={one: 5})

    assert [(r.trial.id, r.repeat) for r in plan.runs] == [(one, 3), (one, 4)]


def test_refused_trial_is_skipped_with_the_reason() -> None:
    plan = schedule(study(), expand(study({"hosts": 2}), catalog()), estimate=lambda _: 1.0)

    assert plan.runs == ()
    assert plan.skipped[0].reason == "site local has 1 host(s), the trial wants 2"


def test_repeats_that_would_fail_as_a_recorded_one_did_are_skipped_once_with_the_reason() -> None:
    trials = expanded()
    one, two = (e.trial.id for e in trials)
    plan = schedule(
        study(), trials, estimate=lambda _: 1.0, done={(one, 0): "failed"}, hopeless={one: "repeat 1 failed"}
    )

    assert {run.trial.id for run in plan.runs} == {two}
    assert [(skip.trial.id, skip.reason) for skip in plan.skipped] == [(one, "repeat 1 failed")]


def test_a_plan_of_which_all_is_skipped_is_impossible_and_one_that_is_done_is_not() -> None:
    trials = expanded()
    refused = [replace(e, refusal="no such host") for e in trials]
    done = {(e.trial.id, repeat): "ok" for e in trials for repeat in range(3)}

    assert schedule(study(), refused, estimate=lambda _: 1.0).is_impossible
    assert not schedule(study(), trials, estimate=lambda _: 1.0, done=done).is_impossible
    assert not schedule(study(), [refused[0], trials[1]], estimate=lambda _: 1.0).is_impossible
