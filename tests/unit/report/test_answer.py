"""The answer in a sentence or two, and the cautions beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest

from paceline.compare import AGREES, Fairness, Proof, compare
from paceline.plan.proof import proof_run
from paceline.record.record import Doubt, Outcome, OutcomeKind
from paceline.report.answer import MOST_LETTERS, answer_sentences
from paceline.report.cautions import cautions
from paceline.report.headline import headline_of
from paceline.spec.networks import NETWORKS
from records import failed_record, make_record, make_trial


def repeats(count=3, **changes):
    return [make_record(repeat=repeat, **changes) for repeat in range(count)]


def knobs(*steps):
    return compare([r for k, s in enumerate(steps) for r in repeats(knobs={"k": k}, step_s=s)])


def answer(comparison):
    return " ".join(answer_sentences(comparison))


def frameworks(steps, workers=(1, 2)):
    """PyTorch and JAX, with so many seconds per step, shown to compute the same."""
    trials = {
        name: [make_trial(framework=name, strategy=strategy, environment=name, workers=n) for n in workers]
        for name, strategy in (("torch", "ddp"), ("jax", "shard_map"))
    }
    proofs = [
        Proof(
            trial=proof_run(trial, None).id,
            framework=name,
            strategy=trial.framework.strategy,
            strategy_class="exact",
            workload="resnet20",
            workers=trial.workers,
            verdict=AGREES,
        )
        for name, made in trials.items()
        for trial in made
    ]
    records = [r for name, made in trials.items() for trial in made for r in repeats(trial=trial, step_s=steps[name])]
    return compare(records, fairness=Fairness(proofs))


def grid(*, networks=(), batches=(16,), workers=(1, 2, 4), models=("resnet20",), strategies=("ddp",), runs=3):
    """Every combination; a slower network and a smaller batch scale worse."""
    records = []
    for model, batch, strategy, count in product(models, batches, strategies, workers):
        for place, label in enumerate(networks or (None,)):
            if count == 1 and place:
                continue
            slower = 1 + (count - 1) * (place + 1) * 4 / batch
            trial = make_trial(
                model=model,
                graph=model,
                batch=batch,
                strategy=strategy,
                workers=count,
                hosts=count if networks else 1,
                network=NETWORKS[label] if label and count > 1 else None,
            )
            step_s = 0.001 * batch * slower * (1 + 0.1 * strategies.index(strategy))
            records += [make_record(trial=trial, step_s=step_s, repeat=repeat) for repeat in range(runs)]
    return compare(records)


def test_one_trial_has_its_speed_and_how_sure_it_is():
    assert answer(compare(repeats(workers=1))).startswith("With 1 worker, training runs at 6")
    assert "samples/s (95 % interval 6" in answer(compare(repeats(workers=1)))


def test_two_trials_that_answer_different_questions_are_not_ranked():
    text = answer(compare([*repeats(model="resnet20", step_s=0.1), *repeats(model="lenet5", graph="other")]))

    assert text.startswith("With lenet5, training runs at 1")
    assert "; with resnet20, at 6" in text


def test_more_such_trials_are_a_range():
    models = {"resnet20": 0.1, "lenet5": 0.05, "alexnet": 0.2}
    text = answer(compare([r for model, s in models.items() for r in repeats(model=model, graph=model, step_s=s)]))

    assert re.fullmatch(
        r"3 configurations that answer different questions run at 3\d\d.* samples/s \(alexnet\) to 1\d\d\d.* samples/s "
        r"\(lenet5\)\.",
        text,
    )


def test_scaling_has_factor_efficiency_interval_and_knee():
    steps = {1: 0.05, 2: 0.0625, 4: 0.1}
    drift = [1.0, 1.01, 0.98]
    records = [make_record(workers=n, step_s=s * d, repeat=r) for n, s in steps.items() for r, d in enumerate(drift)]

    assert answer(compare(records)) == (
        "4 workers train 1.999 × as fast as 1 worker (efficiency 49.98 %, 95 % interval 49.95–50.01 %; "
        "below 80 % from 2 workers on)."
    )


def test_it_is_said_how_far_workers_are_used_well():
    steps = {1: 0.05, 2: 0.051, 4: 0.055, 8: 0.1}

    assert "; above 80 % up to 4 workers)" in answer(
        compare([r for n, s in steps.items() for r in repeats(workers=n, step_s=s)])
    )


def test_two_curves_stand_beside_each_other():
    (sentence,) = answer_sentences(grid(batches=(8, 16), workers=(1, 2)))
    first, second = sentence.split("; ")

    assert first.startswith("With batch 16 per worker, 2 workers train")
    assert "as fast as 1 worker (efficiency" in first
    assert re.fullmatch(r"with batch 8 per worker, 1\.\d+ × \(efficiency 6\d\.\d+ %\)\.", second)


def test_of_many_curves_the_best_is_told_and_how_far_the_others_fall_behind():
    first, second = answer_sentences(grid(networks=("1GbE", "300Mbit", "100Mbit"), batches=(4, 8, 16)))

    assert first.startswith("With batch 16 per worker, 4 workers on 4 hosts over 1GbE train 2.2")
    assert "95 % interval" in first
    assert second.startswith("Across 3 batches and 3 networks the efficiency of 4 workers on 4 hosts is as low as 9.99")
    assert second.endswith(" % (batch 4 per worker over 100Mbit).")


def test_two_frameworks_are_told_apart_by_their_names_and_share_the_size():
    first, second = answer_sentences(frameworks({"torch": 0.05, "jax": 0.06}))

    assert first.startswith("With 2 workers, PyTorch is 1.2")
    assert "× as fast as JAX (95 % interval" in first
    assert "; with 1 worker, 1.2" in first
    assert first.endswith(" ×.")
    assert second.startswith("PyTorch: 2 workers train")
    assert "; JAX: 2.0" in second


def test_strategy_is_named_where_a_framework_has_several():
    records = [
        r for strategy in ("ddp", "fsdp2") for r in repeats(strategy=strategy, step_s=0.05 + 0.01 * (strategy == "ddp"))
    ]

    assert answer(compare(records)).startswith("PyTorch fsdp2 is 1.2")


def test_fastest_and_the_next_are_named():
    text = answer(knobs(0.06, 0.05, 0.08))

    assert text.startswith("With k=1, training is the fastest of 3: 1.2")
    assert "as fast as with k=0, the next" in text


def test_no_winner_is_named_where_none_is_proven():
    assert answer(knobs(0.05, 0.0501, 0.08)).startswith("The settings k=0 and k=1 are equally fast within 2 %")
    assert answer(knobs(0.05, 0.0501, 0.08)).endswith(", ahead of k=2.")


def test_many_that_cannot_be_told_apart_are_counted():
    text = answer(compare([r for k in range(8) for r in repeats(1, knobs={"k": k}, step_s=0.05 + 0.001 * k)]))

    assert text == "The settings k=0, k=1, k=2 and 5 more cannot be told apart."


def test_where_nothing_is_told_apart_in_any_comparison_that_is_all_that_is_said():
    first, _ = answer_sentences(grid(strategies=("ddp", "fsdp2"), batches=(8, 16), runs=1))

    assert first == "No winner is proven in any of 6 comparisons."


def test_largest_size_is_told_and_how_often_its_winner_wins():
    records = [
        r
        for k, s in enumerate((0.06, 0.05))
        for n in (1, 2, 4, 8)
        for r in repeats(knobs={"k": k}, workers=n, step_s=s)
    ]
    first, *_ = answer_sentences(compare(records))

    assert first.startswith("With 8 workers, k=1 is 1.2")
    assert "; it wins all 4 comparisons, by 1.2" in first


def test_winner_of_many_comparisons_is_named_with_its_range():
    first, _ = answer_sentences(grid(strategies=("ddp", "fsdp2"), batches=(8, 16), models=("resnet20", "lenet5")))

    assert re.fullmatch(r"PyTorch ddp is the fastest in all 12 comparisons, 1\.1\d* × as fast as the next\.", first)


def test_winners_that_differ_are_told_with_their_places():
    speeds = {("resnet20", 0): 0.05, ("resnet20", 1): 0.06, ("alexnet", 0): 0.09, ("alexnet", 1): 0.08}
    more = {("lenet5", 0): 0.05, ("lenet5", 1): 0.06}
    made = [r for (m, k), s in (speeds | more).items() for r in repeats(model=m, graph=m, knobs={"k": k}, step_s=s)]

    text = answer(compare(made))

    assert re.fullmatch(
        r"The setting k=0 wins with resnet20 and with lenet5 \(1\.2\d* × as fast as the next\); "
        r"k=1 wins with alexnet \(1\.1\d* × as fast as the next\)\.",
        text,
    )


def test_many_places_are_counted():
    models = {f"m{n}": (0.05, 0.06) for n in range(5)} | {"m5": (0.06, 0.05), "m6": (0.05, 0.0501)}
    made = [
        r
        for m, steps in models.items()
        for k, s in enumerate(steps)
        for r in repeats(model=m, knobs={"k": k}, step_s=s)
    ]

    text = answer(compare([replace(r, trial=regraph(r.trial)) for r in made]))

    assert re.fullmatch(
        r"Of 7 comparisons k=0 wins 5 \(1\.2\d* × as fast as the next\), k=1 1; in 1 the fastest are equally fast within "
        r"2 %; k=0 is among the fastest in 6, k=1 in 2\.",
        text,
    )


def regraph(trial):
    """The trial with a graph of its model's own."""
    return replace(trial, workload=replace(trial.workload, graph=trial.workload.model))


def test_frameworks_without_proof_are_not_ranked():
    jax = make_trial(framework="jax", strategy="flat", environment="jax")

    text = answer(compare([*repeats(), *repeats(trial=jax)]))

    assert text.startswith("1 pair is not ranked: nothing can show that torch and jax")
    assert "fastest" not in text


def test_unranked_pairs_beside_ranked_ones_are_a_caution():
    jax = make_trial(framework="jax", strategy="flat", environment="jax")
    comparison = compare([*repeats(), *repeats(strategy="fsdp2", step_s=0.08), *repeats(trial=jax)])

    assert answer(comparison).startswith("PyTorch ddp is 1.6")
    assert cautions(comparison) == ["2 of 3 pairs are not ranked (no proof)."]


def test_one_run_does_not_claim_to_be_sure():
    comparison = compare([make_record()])

    assert "samples/s (1 run: no interval)" in answer(comparison)
    assert "fewer than three runs" in " ".join(cautions(comparison))


def test_it_is_said_when_nothing_ended_well():
    assert answer(compare([])) == "No answer yet: nothing was run."
    assert "no trial has a successful run (2 workers: failed" in answer(compare([failed_record()]))


def test_long_reason_of_a_failure_is_left_to_the_list_below():
    outcome = Outcome(kind=OutcomeKind.FAILED, stage="setup", reason="a long tale " * 40)

    assert answer(compare([failed_record(outcome=outcome)])) == (
        "No answer yet: no trial has a successful run (failed: the reasons are below)."
    )


LONG = "a-rather-long-name-that-nobody-abbreviates"
SHAPES = {
    "one trial": lambda: compare(repeats()),
    "two trials": lambda: knobs(0.05, 0.06),
    "long names": lambda: compare(
        [r for k in "abc" for n in (1, 2) for r in repeats(knobs={LONG: k * 60}, workers=n, step_s=0.05 + ord(k) / 1e3)]
    ),
    "frameworks": lambda: frameworks({"torch": 0.05, "jax": 0.06}),
    "frameworks at one size": lambda: frameworks({"torch": 0.05, "jax": 0.06}, workers=(2,)),
    "scaling": grid,
    "networks": lambda: grid(networks=("1GbE", "unlimited"), workers=(2, 4)),
    "networks, batches and workers": lambda: grid(networks=("1GbE", "300Mbit", "100Mbit"), batches=(4, 8, 16)),
    "strategies, networks and models": lambda: grid(
        networks=("1GbE", "300Mbit"), models=("resnet20", "alexnet"), strategies=("ddp", "fsdp2", "zero1")
    ),
    "nothing told apart": lambda: knobs(0.05, 0.05, 0.05),
    "single runs": lambda: grid(strategies=("ddp", "fsdp2"), batches=(8, 16), runs=1),
    "only failures": lambda: compare([failed_record(), failed_record(workers=1)]),
    "nothing": lambda: compare([]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_answer_is_one_or_two_short_sentences_whatever_was_compared(shape):
    sentences = answer_sentences(SHAPES[shape]())
    text = " ".join(sentences)

    assert 1 <= len(sentences) <= 2
    assert len(text) <= MOST_LETTERS
    assert not text[0].islower()
    assert all(sentence.endswith(".") for sentence in sentences)
    assert not re.search(r"[Ww]ith (over|with)|  | [,;.]|\(\)", text)


NOISE = Doubt(code="noisy-neighbour", message="others took 40 % of the cores", hint="close them")


@pytest.mark.parametrize(
    ("disturbed", "words"),
    [
        (0, []),
        (1, ["1 of 3 runs was disturbed by other programs: treat small differences as preliminary."]),
        (3, ["All runs were disturbed by other programs: treat this as preliminary."]),
    ],
)
def test_disturbed_runs_are_a_caution(disturbed, words):
    records = [make_record(repeat=r, doubts=(NOISE,) if r < disturbed else ()) for r in range(3)]

    assert cautions(compare(records)) == words


def test_few_disturbed_runs_among_many_are_none():
    assert cautions(compare([make_record(repeat=r, doubts=(NOISE,) if r == 0 else ()) for r in range(11)])) == []


def test_impossible_numbers_are_the_first_caution():
    wrong = Doubt(code="impossible-phases", message="phases sum to more than the step", hint="report it")

    first, second = cautions(compare(repeats(doubts=(NOISE, wrong))))

    assert "impossible-phases" in first
    assert "disturbed" in second


def test_caution_says_when_time_is_simulated_or_a_configuration_has_no_good_run():
    assert cautions(compare(repeats(simulated=True))) == ["Times are simulated, not measured."]
    assert cautions(compare([*repeats(workers=1), failed_record(workers=2)])) == [
        "1 of 2 configurations has no successful run."
    ]


def test_whole_answer_ends_with_its_cautions():
    assert headline_of(compare(repeats(simulated=True))).text.endswith(" Times are simulated, not measured.")
