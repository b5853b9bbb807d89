"""The answer in a sentence or two, and the cautions beside it."""

from __future__ import annotations

import pytest

from paceline.compare import AGREES, Fairness, Proof, compare
from paceline.plan.proof import proof_run
from paceline.record.record import Doubt
from paceline.report.answer import answer_sentences
from paceline.report.cautions import cautions
from paceline.report.text import results_answer
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


def test_scaling_has_factor_efficiency_and_interval():
    steps = {1: 0.05, 2: 0.0625, 4: 0.1}
    drift = [1.0, 1.01, 0.98]
    records = [make_record(workers=n, step_s=s * d, repeat=r) for n, s in steps.items() for r, d in enumerate(drift)]

    assert answer(compare(records)) == (
        "4 workers train 1.999 × as fast as 1 worker (efficiency 49.98 %, 95 % interval 49.95–50.01 %)."
    )


def test_scaling_says_once_what_both_sizes_have_in_common():
    both = [
        make_record(workers=n, step_s=0.05 * n, repeat=r, batch=batch)
        for batch in (8, 16)
        for n in (1, 2)
        for r in range(3)
    ]
    (sentence,) = answer_sentences(compare(both))
    first, second = sentence.split("; ")

    assert first.startswith("batch 16 per worker: 2 workers train")
    assert "as fast as 1 worker (efficiency" in first
    assert second == "batch 8 per worker: 0.9999 × (efficiency 49.99 %)."


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

    assert text.startswith("k=1 is the fastest of 3: 1.2")
    assert "as fast as k=0, the next" in text


def test_no_winner_is_named_where_none_is_proven():
    assert answer(knobs(0.05, 0.0501, 0.08)).startswith("k=0 and k=1 are equally fast within 2 %")
    assert answer(knobs(0.05, 0.0501, 0.08)).endswith(", ahead of k=2.")


def test_frameworks_without_proof_are_not_ranked():
    jax = make_trial(framework="jax", strategy="flat", environment="jax")

    text = answer(compare([*repeats(), *repeats(trial=jax)]))

    assert text.startswith("1 pair not ranked: nothing can show that torch and jax")
    assert "fastest" not in text


def test_one_run_does_not_claim_to_be_sure():
    comparison = compare([make_record()])

    assert "samples/s (1 run: no interval)" in answer(comparison)
    assert "fewer than three runs" in " ".join(cautions(comparison))


def test_it_is_said_when_nothing_ended_well():
    assert answer(compare([])) == "No answer yet: nothing was run."
    assert "no trial has a successful run (2 workers: failed" in answer(compare([failed_record()]))


def test_largest_size_comes_first_and_the_rest_is_counted():
    records = [
        r
        for k, s in enumerate((0.06, 0.05))
        for n in (1, 2, 4, 8)
        for r in repeats(knobs={"k": k}, workers=n, step_s=s)
    ]
    first, *_ = answer_sentences(compare(records))

    assert first.startswith("With 8 workers, k=1 is")
    assert "; with 4 workers, 1.2" in first
    assert first.endswith("(2 more comparisons in the table).")


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
    assert results_answer(compare(repeats(simulated=True))).endswith(" Times are simulated, not measured.")
