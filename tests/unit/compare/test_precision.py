from __future__ import annotations

from paceline.compare import more_repeats
from paceline.spec.study import Repeats
from records import failed_record, make_record, make_trial

TRIAL = make_trial()
ADAPTIVE = Repeats(minimum=3, maximum=12, until=0.02)


def runs(steps):
    return [make_record(trial=TRIAL, step_s=s, repeat=r, jitter=0.0) for r, s in enumerate(steps)]


def wanted(records, repeats=ADAPTIVE):
    return more_repeats(records, [TRIAL], repeats).get(TRIAL.id)


def test_new_trial_gets_the_minimum():
    assert wanted([]) == 3


def test_precise_trial_is_left_out():
    assert wanted(runs([0.05, 0.0501, 0.05])) is None


def test_two_runs_that_agree_are_enough_where_two_are_the_minimum():
    two_to_twelve = Repeats(minimum=2, maximum=12, until=0.02)

    assert wanted(runs([0.05, 0.05005]), two_to_twelve) is None
    assert wanted(runs([0.05, 0.06]), two_to_twelve) == 4


def test_noisy_trial_gets_more_but_at_most_doubles():
    assert wanted(runs([0.05, 0.06, 0.045])) == 6


def test_nearly_precise_trial_gets_one_more():
    assert wanted(runs([0.05, 0.0515, 0.05, 0.0515, 0.05])) == 6


def test_maximum_is_never_exceeded():
    noisy = [0.05, 0.06, 0.045, 0.055]

    assert wanted(runs(noisy * 2 + noisy[:2])) == 12
    assert wanted(runs(noisy * 3)) is None


def test_exact_number_of_repeats_asks_for_no_more():
    assert wanted(runs([0.05, 0.09, 0.03]), Repeats(minimum=3, maximum=3)) is None


def test_failed_runs_are_used_repeats():
    noisy = [*runs([0.05, 0.06, 0.045]), *(failed_record(trial=TRIAL, repeat=r) for r in range(3, 11))]

    assert wanted(noisy) == 12


def test_trial_that_never_ends_well_stops_at_the_minimum():
    assert wanted([failed_record(trial=TRIAL, repeat=r) for r in range(3)]) is None


def test_only_the_newest_machine_counts():
    old = [make_record(trial=TRIAL, machine_id="old", repeat=r, started=1.0) for r in range(5)]
    new = [make_record(trial=TRIAL, machine_id="new", repeat=0, started=2.0)]

    assert wanted([*old, *new]) == 3
