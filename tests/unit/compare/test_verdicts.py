from __future__ import annotations

import pytest

from paceline.compare import Fairness, Proof, compare
from paceline.plan.proof import proof_run
from records import make_record, make_trial


def repeats(count=4, **changes):
    return [make_record(repeat=repeat, **changes) for repeat in range(count)]


def jax_trial(**changes):
    return make_trial(framework="jax", strategy="flat", environment="jax", **changes)


def test_faster_one_is_called_a_and_the_ratio_is_of_throughputs():
    comparison = compare([*repeats(knobs={"k": 1}, step_s=0.06), *repeats(knobs={"k": 2}, step_s=0.05)])

    (pair,) = comparison.verdicts
    assert comparison.row(pair.a).label == "k=2"
    assert pair.ratio.value == pytest.approx(1.2, rel=0.02)
    assert pair.ratio.contains(pair.ratio.value)
    assert (pair.ratio.level, pair.ratio.unit, pair.ratio.by, pair.ratio.n_runs) == (0.95, "1", "derived", 4)
    assert (pair.verdict, pair.paired, pair.n_runs) == ("different", True, 4)


def test_difference_inside_the_margin_is_equal():
    records = [*repeats(knobs={"k": 1}, step_s=0.05), *repeats(knobs={"k": 2}, step_s=0.0502)]

    assert [pair.verdict for pair in compare(records).verdicts] == ["equal within the margin"]
    assert [pair.verdict for pair in compare(records, margin=0.001).verdicts] == ["different"]


def test_noise_larger_than_the_difference_cannot_be_told_apart():
    noise = [1.0, 1.3, 0.8, 1.1]
    records = [make_record(knobs={"k": 1}, step_s=0.05 * n, repeat=r) for r, n in enumerate(noise)]
    records += [make_record(knobs={"k": 2}, step_s=0.051 * n, repeat=r) for r, n in enumerate(reversed(noise))]

    (pair,) = compare(records).verdicts
    assert pair.verdict == "cannot be told apart"


def test_one_run_each_cannot_be_told_apart_whatever_the_ratio():
    (pair,) = compare([make_record(knobs={"k": k}, step_s=s) for k, s in ((1, 0.05), (2, 0.5))]).verdicts

    assert (pair.verdict, pair.ratio.ends, pair.p) == ("cannot be told apart", None, 1.0)
    assert "measure.repeats" in pair.note


def test_more_pairs_make_each_claim_harder():
    wobble = [1.0, 1.01, 0.995, 1.02]
    records = [
        make_record(knobs={"k": k}, step_s=s * (wobble[(r + k) % 4]), repeat=r)
        for k, s in ((1, 0.05), (2, 0.0525), (3, 0.055))
        for r in range(4)
    ]

    pairs = compare(records).verdicts

    assert len(pairs) == 3
    assert any(pair.p_adjusted > pair.p for pair in pairs)


@pytest.mark.parametrize(
    "other",
    [
        {"workers": 4},
        {"batch": 64},
        {"model": "alexnet", "graph": "ff"},
        {"device": "cuda"},
        {"scaling": "strong"},
        {"input": "pipeline"},
    ],
)
def test_other_questions_are_not_answered_by_one_ranking(other):
    assert compare([*repeats(), *repeats(**other)]).verdicts == ()


def test_unequal_thread_budgets_are_said():
    (pair,) = compare([*repeats(threads=1), *repeats(threads=2)]).verdicts

    assert "unequal budgets" in pair.note


def test_two_rounds_are_tested_and_have_no_interval():
    (pair,) = compare([*repeats(2, knobs={"k": 1}), *repeats(2, knobs={"k": 2}, step_s=0.06)]).verdicts

    assert (pair.n_runs, pair.ratio.n_runs, pair.paired) == (2, 2, True)
    assert pair.ratio.ends is None
    assert pair.p is not None
    assert pair.note is None


def test_json_has_the_ratio_with_its_ends_and_level_side_by_side():
    (pair,) = compare([*repeats(knobs={"k": 1}), *repeats(knobs={"k": 2}, step_s=0.06)]).verdicts
    ratio, data = pair.ratio, pair.to_json()

    assert (data["ratio"], data["low"], data["high"], data["level"]) == (ratio.value, *ratio.interval, 0.95)
    assert set(data) - {"low", "high", "level"} == set(pair.__dataclass_fields__)


def test_json_of_a_pair_that_is_not_ranked_has_neither_ratio_nor_level():
    (pair,) = compare([*repeats(), *repeats(trial=jax_trial(), step_s=0.1)]).verdicts

    assert {pair.to_json()[name] for name in ("ratio", "low", "high", "level", "p")} == {None}


def test_two_frameworks_without_proof_are_not_ranked():
    records = [*repeats(), *repeats(trial=jax_trial(), step_s=0.1)]

    (pair,) = compare(records).verdicts
    assert (pair.verdict, pair.ratio, pair.p) == ("no proof", None, None)
    assert "shown and not ranked" in pair.note


def test_two_frameworks_are_ranked_when_both_agree_with_the_reference_and_else_it_is_said_why_not():
    records = [*repeats(), *repeats(trial=jax_trial(), step_s=0.1)]

    def verdict(**jax):
        both = Fairness([proof_of(records[0].trial), proof_of(records[-1].trial, **jax)])
        (pair,) = compare(records, fairness=both).verdicts
        return pair

    assert verdict().verdict == "different"
    refused = verdict(verdict="not comparable", reasons=("the loss of step 3 is far off",))
    assert (refused.verdict, refused.ratio) == ("not comparable", None)
    assert "the loss of step 3 is far off" in refused.note
    assert verdict(verdict="no proof", reasons=("its proof run has not been run",)).verdict == "no proof"


def proof_of(trial, **changes):
    told = {
        "trial": proof_run(trial).id,
        "framework": trial.framework.name,
        "strategy": trial.framework.strategy,
        "strategy_class": "exact",
        "workload": trial.workload.model,
        "workers": 2,
        "verdict": "agrees",
    }
    return Proof(**(told | changes))


def test_two_machines_are_not_ranked_unless_asked():
    records = [*repeats(machine_id="a"), *repeats(machine_id="b", step_s=0.1)]

    (refused,) = compare(records).verdicts
    (asked,) = compare(records, across_machines=True).verdicts

    assert (refused.verdict, refused.ratio) == ("different machines", None)
    assert "--across-machines" in refused.note
    assert asked.verdict == "different"
    assert "two machines" in asked.note


def test_what_is_not_ranked_says_nothing_about_how_runs_spread():
    """Ten trials make 45 pairs, enough to share their spread; an eleventh on another machine is in no ranked pair."""
    ours = [
        make_record(
            knobs={"variant": variant}, repeat=repeat, step_s=0.05 * (1 + 0.01 * ((variant * 7 + repeat * 3) % 5))
        )
        for variant in range(10)
        for repeat in range(3)
    ]
    elsewhere = [
        make_record(knobs={"variant": 99}, repeat=repeat, step_s=0.05 * 10**repeat, machine_id="b")
        for repeat in range(3)
    ]

    def ranked(records):
        return {(pair.a, pair.b): pair for pair in compare(records).verdicts if pair.p is not None}

    alone, beside = ranked(ours), ranked([*ours, *elsewhere])
    assert len(alone) == 45
    assert beside == alone


def test_two_states_of_one_environment_are_not_ranked_unless_asked():
    records = [
        *repeats(knobs={"k": 1}),
        *repeats(knobs={"k": 2}, environment={"name": "torch", "packages": {"numpy": "9"}}),
    ]

    assert [pair.verdict for pair in compare(records).verdicts] == ["different machines"]


def test_strategy_classes_are_never_ranked_in_one_list():
    comparison = compare([*repeats(), *repeats(strategy="powersgd", strategy_class="approximate")])

    assert comparison.verdicts == ()
    assert [note.code for note in comparison.notes] == ["classes"]


def test_simulated_time_is_never_ranked_against_measured():
    comparison = compare([*repeats(knobs={"k": 1}), *repeats(knobs={"k": 2}, simulated=True)])

    assert comparison.verdicts == ()
    assert [note.code for note in comparison.notes] == ["simulated"]


def test_law_time_without_jitter_is_judged_without_complaint():
    law = {"jitter": 0.0, "simulated": True, "workers": 1}
    comparison = compare([*repeats(knobs={"k": 1}, step_s=0.05, **law), *repeats(knobs={"k": 2}, step_s=0.04, **law)])

    assert comparison.rows[0].throughput.value == pytest.approx(32 / 0.05)
    assert comparison.verdicts[0].ratio.value == pytest.approx(0.05 / 0.04)
    assert comparison.verdicts[0].ratio.by == "simulated"
    assert comparison.verdicts[0].verdict == "different"


def sweep(settings, **changes):
    return [record for k in range(settings) for record in repeats(knobs={"k": k}, step_s=0.05 + 0.001 * k, **changes)]


def test_of_up_to_twelve_answers_every_pair_is_compared():
    assert len(compare(sweep(12)).verdicts) == 66


def test_of_more_answers_the_fastest_is_compared_with_each():
    comparison = compare(sweep(20))

    assert len(comparison.verdicts) == 19
    assert {comparison.row(pair.a).label for pair in comparison.verdicts} == {"k=0"}
    assert {comparison.row(pair.b).label for pair in comparison.verdicts} == {f"k={k}" for k in range(1, 20)}


def test_pairs_that_are_not_formed_count_in_the_correction():
    pairs = compare(sweep(20)).verdicts
    least = min(pairs, key=lambda pair: pair.p)

    assert least.p_adjusted == pytest.approx(min(1.0, 190 * least.p))


def test_many_answers_of_two_machines_have_a_fastest_on_each():
    records = [*sweep(10), *sweep(10, machine_id="machine-b")]

    assert len(compare(records).verdicts) == 18
    assert len(compare(records, across_machines=True).verdicts) == 19
