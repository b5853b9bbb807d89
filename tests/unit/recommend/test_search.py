"""Candidates, limits, ranks, ties and fronts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advice import (
    READY,
    calibration_of,
    candidate,
    catalog,
    known,
    known_from,
    records_of,
    trial_of,
    true_step_s,
)
from paceline.compare import AGREES, NOT_COMPARABLE, Fairness, Proof
from paceline.errors import PacelineError, SpecError
from paceline.plan.proof import proof_run
from paceline.recommend.candidates import identity, measured, ratio, set_apart
from paceline.recommend.objective import GOALS, THROUGHPUT, Prices, Wish, wish_for
from paceline.recommend.search import cannot_be_told_apart, front, gain, survey, to_try
from records import failed_record, make_record


def asked(within: str = "", goal: str = "throughput", **fields) -> Wish:
    return replace(wish_for(goal, Prices(epoch=1e4, price=2.0, power=300.0), within), **fields)


def sizes(found) -> list[tuple[int, int]]:
    return [(one.trial.workers, one.trial.workload.batch_per_worker) for one in found.ranked]


def said(found) -> str:
    return "\n".join(found.not_considered)


def test_measured_and_predicted_stand_in_one_list_best_first():
    found = survey(known(), asked())
    by = {size: one.by for size, one in zip(sizes(found), found.ranked, strict=True)}

    assert sizes(found)[0] == (8, 16)
    assert set(sizes(found)) == {(workers, batch) for workers in (1, 2, 4, 8) for batch in (8, 16)}
    assert {size for size, word in by.items() if word == "measured"} == {(w, b) for w in (1, 2) for b in (8, 16)}
    speeds = [one.throughput.value for one in found.ranked]
    assert speeds == sorted(speeds, reverse=True)


def test_what_was_measured_is_never_predicted_and_both_are_right():
    found = survey(known(), asked())

    assert len({one.identity for one in found.ranked}) == len(found.ranked)
    for one in found.ranked:
        truth = one.trial.batch_global / true_step_s(one.trial)
        assert one.throughput.value == pytest.approx(truth, rel=0.03)
        assert one.throughput.low < one.throughput.value < one.throughput.high


def test_intervals_of_measured_ones_are_those_of_90_percent():
    (one,) = measured(known_from(records_of([trial_of()])))[0]
    quantity = one.row.throughput

    assert one.throughput.value == pytest.approx(quantity.value)
    assert quantity.low < one.throughput.low < one.throughput.high < quantity.high


def test_limits_on_numbers_hold():
    assert set(sizes(survey(known(), asked("workers<=3,batch=8")))) == {(1, 8), (2, 8), (3, 8)}
    assert {workers for workers, _ in sizes(survey(known(), asked("workers=6")))} == {6}
    assert "4 choices outside workers=6" in said(survey(known(), asked("workers=6")))


def test_a_batch_that_is_asked_for_is_considered():
    assert {batch for _, batch in sizes(survey(known(), asked("batch=12")))} == {12}


def test_larger_batches_are_considered_only_where_memory_says_what_fits():
    assert {batch for _, batch in sizes(survey(known(), asked("memory<=1GB")))} == {8, 16, 32, 64}
    assert {batch for _, batch in sizes(survey(known(), asked("memory<=450MB")))} == {8, 16, 32, 64}
    # Measured workers hold 400 MiB, predicted ones 100 MB and 1 MB a sample.
    assert {batch for _, batch in sizes(survey(known(), asked("memory<=140MB")))} == {8, 16, 32}
    assert "memory<=140MB" in said(survey(known(), asked("memory<=140MB")))
    one_batch = survey(known(batches=(8,), calibrated={"memory": (1e8, 0.0)}), asked("memory<=1GB"))
    assert "unknown how memory grows" in said(one_batch)
    unknown = survey(known(calibrated={"memory": None}), asked("memory<=1GB"))
    assert {one.by for one in unknown.ranked} == {"measured"}


def test_deadline_and_budget_are_kept():
    everything = survey(known(), asked())
    times = [1e4 / one.throughput.value for one in everything.ranked]
    quick = survey(known(), asked(f"deadline<={times[2] * 1.001}s"))

    assert len(quick.ranked) == 3
    assert "outside deadline" in said(quick)
    assert not survey(known(), asked("budget<=0.0001")).ranked


@pytest.mark.parametrize("within", ["framework=jax", "strategy=zero", "network=1GbE", "model=alexnet"])
def test_a_name_that_no_trial_has_is_a_slip_of_the_pen(within):
    with pytest.raises(SpecError, match=r"no such \w+ was measured"):
        survey(known(), asked(within))


def test_without_limits_nothing_is_considered_that_the_site_cannot_run():
    assert {workers for workers, _ in sizes(survey(known(cores=2), asked()))} == {1, 2}
    assert "4 workers or more" in said(survey(known(cores=2), asked()))
    assert {workers for workers, _ in sizes(survey(known(cores=2), asked("workers<=8")))} == {1, 2, 4, 8}


def test_what_cannot_be_run_here_is_not_tried_here():
    there = known(cores=2)
    found = survey(there, asked("workers<=8"))
    trials, obstacles = to_try(found, there)

    assert trials == []
    assert "want 8 cores per host" in obstacles[0]


def test_a_framework_that_is_not_here_is_not_tried():
    there = known()
    there = replace(there, catalog=catalog(torch="no wheel for it"))

    assert to_try(survey(there, asked()), there) == ([], ["no wheel for it"])


def test_strategies_that_take_one_worker_are_not_predicted_for_more():
    lone = [trial_of(strategy="single", workers=1, batch=batch) for batch in (8, 16)]
    found = survey(known_from(records_of(lone), [calibration_of(lone)]), asked())

    assert {workers for workers, _ in sizes(found)} == {1}
    assert "takes at most 1 worker" in said(found)


def test_hosts_grow_where_several_were_run():
    from paceline.spec.networks import NETWORKS

    spread = [
        trial_of(workers=hosts, hosts=hosts, batch=8, network=NETWORKS["1GbE"] if hosts > 1 else None)
        for hosts in (1, 2)
    ]
    there = known_from(records_of(spread), [calibration_of(spread)], where=catalog(hosts=8))
    found = survey(there, asked("hosts<=4"))

    assert {(one.hosts, one.trial.cluster.workers_per_host) for one in found.ranked} == {(1, 1), (2, 1), (4, 1)}
    assert {one.trial.cluster.network for one in found.ranked if one.hosts > 1} == {NETWORKS["1GbE"]}
    assert set(sizes(survey(there, asked("network=1GbE,hosts<=2")))) == {(1, 8), (2, 8)}


def test_the_cheapest_is_not_the_fastest_where_hosts_cost():
    from paceline.spec.networks import NETWORKS

    link = NETWORKS["10GbE"]
    spread = [trial_of(workers=hosts, hosts=hosts, batch=8, network=link if hosts > 1 else None) for hosts in (1, 2, 4)]
    there = known_from(records_of(spread), where=catalog(hosts=8))
    fastest, cheapest = (survey(there, asked(goal=goal)).ranked[0].hosts for goal in ("throughput", "cost"))

    assert cheapest == 1
    assert fastest > cheapest


def test_the_best_bucket_is_a_choice_of_its_own():
    bucketed = {"ready": READY, "bucketed": True, "messages": (1e7,)}
    found = survey(known(calibrated=bucketed), asked())
    with_knob = [one for one in found.ranked if one.trial.framework.knobs["bucket_bytes"] is not None]

    assert with_knob
    assert {one.by for one in with_knob} == {"modelled"}
    assert all(one.trial.workers > 1 for one in with_knob)
    first = found.ranked[0]
    assert set_apart([first.trial, found.present.trial], catalog())[0].keys() == {"bucket_bytes"}


def test_compression_is_approximate_and_stays_apart_unless_it_is_asked_for():
    apart, together = survey(known(), asked()), survey(known(), asked(allow=frozenset({"approximate"})))

    assert {one.strategy_class for one in apart.ranked} == {"exact"}
    assert "fp16 gradients: approximate" in said(apart)
    assert {one.strategy_class for one in together.ranked} == {"exact", "approximate"}
    assert "do not include the time to compress" in said(together)


def test_classes_that_were_measured_stay_apart():
    trials = [trial_of(), trial_of(strategy="local", strategy_class="approximate")]
    there = known_from(records_of(trials))

    assert [one.trial.framework.strategy for one in survey(there, asked()).ranked] == ["ddp"]
    assert "include it: --allow approximate" in said(survey(there, asked()))
    assert len(survey(there, asked(allow=frozenset({"approximate"}))).ranked) == 2
    # Whoever trains approximately now is told about what is approximate.
    now = asked(present=trials[1].id)
    assert [one.trial.framework.strategy for one in survey(there, now).ranked] == ["local"]


def test_simulated_times_and_other_machines_stay_apart():
    simulated = known_from(records_of([trial_of(), trial_of(workers=1, simulated=True)]))
    elsewhere = [make_record(trial=trial_of(workers=1), repeat=repeat, machine_id="b") for repeat in range(2)]
    records = [*records_of([trial_of()]), *elsewhere]

    assert len(survey(simulated, asked()).ranked) == 1
    assert "simulated" in said(survey(simulated, asked()))
    assert len(survey(known_from(records), asked()).ranked) == 1
    assert "two machines" in said(survey(known_from(records), asked()))


def two_frameworks(**verdicts: str):
    trials = [trial_of(), trial_of(framework="jax", environment="jax")]
    records = records_of(trials, lambda trial: 0.05 if trial.framework.name == "torch" else 0.03)
    proofs = [
        Proof(
            trial=proof_run(trial).id,
            framework=trial.framework.name,
            strategy="ddp",
            strategy_class="exact",
            workload="mlp",
            workers=2,
            verdict=verdicts[trial.framework.name],
            reasons=("it drops a bias",),
        )
        for trial in trials
        if trial.framework.name in verdicts
    ]
    return known_from(records, fairness=Fairness(proofs))


def test_frameworks_without_a_proof_are_not_ranked_against_each_other():
    without, proven = two_frameworks(), two_frameworks(torch=AGREES, jax=AGREES)

    assert [one.trial.framework.name for one in survey(without, asked()).ranked] == ["torch"]
    assert "no proof" in said(survey(without, asked()))
    assert [one.trial.framework.name for one in survey(proven, asked()).ranked] == ["jax", "torch"]


def test_what_computes_something_else_is_never_the_present_choice_by_itself():
    there = two_frameworks(torch=NOT_COMPARABLE, jax=AGREES)
    found = survey(there, asked())

    assert found.present.trial.framework.name == "jax"
    assert "drops a bias" in said(found)


def test_the_present_choice_is_the_first_trial_or_the_one_that_is_named():
    there = known()

    assert sizes(replace(survey(there, asked()), ranked=(survey(there, asked()).present,))) == [(1, 8)]
    named = survey(there, asked(present=trial_of(workers=2, batch=16).id)).present
    assert (named.trial.workers, named.trial.workload.batch_per_worker) == (2, 16)
    with pytest.raises(SpecError, match="several trial ids begin with it"):
        survey(there, asked(present="torch"))
    with pytest.raises(SpecError, match="no such trial"):
        survey(there, asked(present="jax-"))


def test_a_choice_is_for_one_model():
    trials = [trial_of(), trial_of(model="alexnet", graph="ff")]
    there = known_from(records_of(trials, lambda _: 0.05))

    with pytest.raises(PacelineError, match="trains 2 models") as error:
        survey(there, asked())
    assert "--within model=" in error.value.hint
    (one,) = survey(there, asked("model=alexnet")).ranked
    assert one.trial.workload.model == "alexnet"


def test_one_run_is_not_considered_and_what_failed_is_not_predicted():
    trials = [trial_of(workers=workers, batch=8) for workers in (1, 2)]
    broken = trial_of(workers=4, batch=8)
    records = [*records_of(trials), failed_record(trial=broken), make_record(trial=trial_of(workers=8, batch=8))]
    found = survey(known_from(records, [calibration_of(trials)]), asked("workers<=8"))

    assert set(sizes(found)) == {(1, 8), (2, 8)}
    assert "it broke" in said(found)
    assert "a single run gives no spread" in said(found)


def test_nothing_measured_twice_says_what_to_type():
    with pytest.raises(PacelineError, match="at least two successful runs") as error:
        survey(known_from([make_record(trial=trial_of())]), asked())
    assert "paceline run" in error.value.hint


def test_without_a_model_what_was_measured_is_ranked_and_the_rest_is_said():
    found = survey(known_from(records_of([trial_of(workers=1), trial_of(workers=2)])), asked())

    assert [one.by for one in found.ranked] == ["measured", "measured"]
    assert "paceline calibrate" in said(found)


def test_tries_do_not_move_the_horizon():
    there = known()
    tried = trial_of(workers=8, batch=16)
    own = [runs.trial for runs in there.runs]
    again = known_from(records_of([*own, tried]), [calibration_of([*own, tried])], tries=frozenset({tried.id}))

    assert max(one.trial.workers for one in survey(again, asked()).ranked) == 8
    assert survey(again, asked()).ranked[0].by == "measured"


def test_seeds_and_lengths_are_one_choice():
    one, seeded, longer = trial_of(), trial_of(seed=1), trial_of(steps=80)

    assert identity(one) == identity(seeded) == identity(longer) != identity(trial_of(workers=4))
    rows, left_out = measured(known_from(records_of([one, seeded, longer])))
    assert len(rows) == 1
    assert "and 1 more: same configuration as another trial" in left_out[0]


def test_time_of_a_slowed_down_site_counts_as_if_it_were_not():
    plain = trial_of()
    slowed = replace(plain, cluster=replace(plain.cluster, options={"dilation": 2.0}))
    (one,), _ = measured(known_from(records_of([slowed], lambda _: 0.1)))

    assert one.throughput.value == pytest.approx(2 * slowed.batch_global / 0.1, rel=0.02)


def test_measured_ones_are_told_apart_by_the_verdict_of_the_comparison():
    equal = known(knobs=({}, {"overlap": False}))
    found = survey(equal, asked("workers=2,batch=16"))

    assert [one.by for one in found.ranked] == ["measured", "measured"]
    assert found.tied == (False, True)
    trials = [trial_of(), trial_of({"overlap": False})]
    unequal = known_from(records_of(trials, lambda trial: 0.05 if trial.framework.knobs["overlap"] else 0.06))
    assert survey(unequal, asked()).tied == (False, False)


def test_predicted_ones_are_told_apart_by_their_intervals():
    comparison = known().comparison
    first = candidate(100.0, workers=8)

    assert cannot_be_told_apart(first, candidate(95.0, workers=4), THROUGHPUT, comparison)
    assert not cannot_be_told_apart(first, candidate(90.0, workers=4), THROUGHPUT, comparison)


def test_the_ratio_of_independent_ones_is_wider_than_each():
    one, other = candidate(100.0, 0.03), candidate(50.0, 0.04, workers=4)
    found = ratio(one, other)

    assert found.value == 2.0
    assert np.log(found.high / 2) == pytest.approx(np.hypot(np.log(1.03), np.log(1.04)))
    assert np.log(2 / found.low) == pytest.approx(np.hypot(np.log(1.03), np.log(1.04)))
    assert (ratio(one, one).low, ratio(one, one).high) == (1.0, 1.0)


def test_runs_of_one_round_are_compared_with_each_other():
    there = known_from(records_of([trial_of(workers=1), trial_of(workers=2)]))
    fast, slow = survey(there, asked()).ranked
    paired = ratio(fast, slow)
    alone = fast.throughput.high / fast.throughput.value

    # The runs of both wobble together, so their ratio hardly does.
    assert paired.high / paired.value < alone


def test_gain_is_above_one_for_the_better_whatever_the_goal():
    one, other = candidate(200.0, workers=2, hosts=2), candidate(100.0, workers=1)

    assert gain(one, other, GOALS["throughput"]).value == 2.0
    assert gain(one, other, GOALS["epoch-time"]).value == 2.0
    assert gain(one, other, GOALS["cost"]).value == 1.0


def test_the_front_holds_what_nothing_beats_in_both():
    ranked = [
        candidate(390.0, workers=4, hosts=4),
        candidate(300.0, workers=4, hosts=4),
        candidate(200.0, workers=2, hosts=2),
        candidate(90.0, workers=1),
    ]

    # 390 on 4 hosts is fastest; 200 on 2 costs least a sample, and beats 300 on 4 and 90 on 1 in that.
    assert front(ranked, Prices(price=2.0)) == (0, 2)
    assert front(ranked, Prices(power=300.0)) == (0, 2)
    assert front(ranked, Prices()) == ()


def test_twins_do_not_push_each_other_off_the_front():
    assert front([candidate(100.0), candidate(100.0, workers=4)], Prices(price=1.0)) == (0, 1)


def test_the_best_is_tried_where_only_the_model_knows_it():
    there = known()
    found = survey(there, asked())
    trials, obstacles = to_try(found, there)

    assert trials[0] == found.ranked[0].trial
    assert len(trials) <= 3
    assert obstacles == []


def test_nothing_is_tried_where_measurements_decide():
    there = known()

    assert to_try(survey(there, asked("workers<=2,batch=8|16")), there) == ([], [])
