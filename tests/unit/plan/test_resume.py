"""Which recorded attempts count as done, and how many repeats are wanted when a study is measured again."""

from __future__ import annotations

from dataclasses import replace

from paceline.plan.resume import Attempt, done_runs, hopeless_trials, next_attempts, repeats_again
from paceline.plan.trial import Limits
from paceline.spec import read_study
from records import make_trial
from street import study_of

TRIAL = make_trial()
ENDED_WELL = Attempt(trial=TRIAL.id, repeat=0, number=0, outcome="ok", ok=True, limits=TRIAL.limits)
FAILED = replace(ENDED_WELL, outcome="failed", ok=False, would_fail_again="it cannot be imported")
OTHER_LIMITS = Limits(time_s=1.0, memory_bytes=None)


def test_a_run_that_ended_well_is_done_whatever_its_limits_were() -> None:
    attempt = replace(ENDED_WELL, limits=OTHER_LIMITS)

    assert done_runs([attempt], [TRIAL], "today") == {(TRIAL.id, 0): "ok"}


def test_a_run_that_failed_under_other_limits_is_not_done() -> None:
    assert done_runs([FAILED], [TRIAL], "today") == {(TRIAL.id, 0): "failed"}
    assert done_runs([replace(FAILED, limits=OTHER_LIMITS)], [TRIAL], "today") == {}


def test_a_proof_is_done_only_for_the_adapters_that_it_ran() -> None:
    assert done_runs([replace(ENDED_WELL, proof_by="today")], [TRIAL], "today") == {(TRIAL.id, 0): "ok"}
    assert done_runs([replace(ENDED_WELL, proof_by="before")], [TRIAL], "today") == {}


def test_only_attempts_that_are_done_make_a_trial_hopeless() -> None:
    assert hopeless_trials([FAILED], {(TRIAL.id, 0): "failed"}) == {TRIAL.id: "it cannot be imported"}
    assert hopeless_trials([FAILED], {}) == {}


def test_the_next_attempt_follows_the_last() -> None:
    assert next_attempts([replace(FAILED, number=2)]) == {(TRIAL.id, 0): 3}


def test_measuring_again_adds_the_repeats_of_the_study_to_the_recorded_ones() -> None:
    study = read_study(study_of(measure={"repeats": 3}))
    attempts = [ENDED_WELL, replace(FAILED, repeat=1)]

    assert repeats_again(study, [TRIAL], attempts) == {TRIAL.id: 5}
    assert repeats_again(study, [TRIAL], []) == {TRIAL.id: 3}
