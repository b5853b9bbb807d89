"""The fairness proof, judged on records whose distances from the reference are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from paceline.compare import prove
from paceline.compare.distances import FLOAT32_SPACING
from paceline.frameworks.torch import LOCAL_FROM_THE_START, LOCAL_STEPS, POWERSGD
from paceline.plan.approximation import BF16, FACTOR, FP16_EXCHANGE
from paceline.plan.proof import STEPS, proof_cases, proof_run, runs_of
from paceline.record import OutcomeKind
from paceline_worker.evidence import describe
from records import make_record, make_trial

ROUNDING = 1e-6
"""Relative distance of the trusted float32 runs from the reference."""
COARSE = 0.005
"""Relative distance of the reference's gradient in bf16."""
PARAMETERS = 269722
SHAPES = {"conv.weight": (4, 3), "fc.bias": (5,)}


def tensors(scale=1.0, tilt=0.0):
    """Gradients: `scale` changes their norms, `tilt` their direction alone."""
    random = np.random.default_rng(0)
    found = {}
    for name, shape in SHAPES.items():
        array, other = random.normal(size=shape), random.normal(size=shape)
        turned = array + tilt * other
        found[name] = describe(name, scale * turned * np.linalg.norm(array) / np.linalg.norm(turned))
    return found


TRUTH = 2.0 * 0.95 ** np.arange(STEPS)


def proof_record(
    trial, *, losses=None, gradients=None, weights=None, statistics=None, facts=None, parameters=PARAMETERS
):
    """A proof run; `losses`, `gradients` and `weights` by rank."""
    ranks = trial.ranks
    losses = losses if losses is not None else [TRUTH] * ranks
    record = make_record(trial=replace(trial, framework=replace(trial.framework, one_process=False)))
    samples = pa.table(
        {
            "rank": np.repeat(np.arange(ranks), STEPS),
            "step": np.tile(np.arange(STEPS), ranks),
            "loss": np.concatenate(losses),
        }
    )
    shown = [
        {
            "gradients": (gradients or [tensors()] * ranks)[r],
            "weights": (weights or [tensors()] * ranks)[r],
            "statistics": statistics or {},
        }
        for r in range(ranks)
    ]
    return replace(
        record,
        trial=trial,
        samples=samples,
        kind="proof",
        inputs={"parameters": PARAMETERS, "forward_flops": 1e6, "backward_flops": 2e6},
        ranks=tuple(
            replace(record.ranks[r], parameters=parameters, facts={"evidence": shown[r], **(facts or {})})
            for r in range(ranks)
        ),
    )


def rounded(by_worker, rounding, statistics=None):
    """What a float32 training of the reference shows, off by `rounding` in all that it shows."""
    turned = tensors(1 + rounding)
    losses = [list(one * (1 + rounding)) for one in by_worker]
    return {"losses": losses, "gradients": turned, "weights": turned, "statistics": statistics or {}}


def verdict(
    subject,
    *,
    workers=1,
    strategy_class="exact",
    roundings=(ROUNDING,),
    by_worker=None,
    statistics=None,
    approximations=(),
    coarse=None,
):
    """The proof of one subject whose judge is as it should be."""
    trial = make_trial(framework="jax", workers=workers, strategy_class=strategy_class)
    reference = replace(make_trial(framework="torch").framework, name="reference", one_process=True)
    (case,) = proof_cases([trial], reference=reference, approximations=lambda _choice: approximations)
    by_worker = by_worker or [TRUTH] * workers
    records = {
        case.reference.id: proof_record(
            case.reference,
            losses=[np.mean(by_worker, axis=0)],
            facts={
                "losses": [list(one) for one in by_worker],
                "roundings": [rounded(by_worker, rounding, statistics) for rounding in roundings],
                "coarse_gradients": None if coarse is None else {"bf16": tensors(1 + coarse)},
            },
            statistics=statistics,
        )
    }
    if subject is not None:
        records[case.subject.id] = subject(case.subject)
    (proof,) = prove([case], records).proofs.values()
    return proof


def approximated(subject, *approximations, coarse=COARSE):
    """The proof of two workers that give up exactness in these ways."""
    return verdict(subject, workers=2, strategy_class="approximate", approximations=approximations, coarse=coarse)


def shows(**shown):
    return lambda trial: proof_record(trial, **shown)


@pytest.mark.parametrize(("factor", "expected"), [(0.0, "agrees"), (4.9, "agrees"), (5.1, "not comparable")])
def test_a_loss_may_be_five_times_as_far_from_the_reference_as_pytorch(factor, expected):
    proof = verdict(shows(losses=[TRUTH * (1 + factor * ROUNDING)]))

    assert proof.verdict == expected
    assert proof.distances[0].allowed == pytest.approx(FACTOR * ROUNDING)


def test_one_step_far_off_is_found_and_named():
    losses = TRUTH.copy()
    losses[13] *= 1.001

    proof = verdict(shows(losses=[losses]))

    assert proof.verdict == "not comparable"
    assert proof.reasons[0].startswith("loss of step 13")


def test_the_largest_of_all_roundings_counts():
    proof = verdict(shows(), roundings=(0.0, ROUNDING, 0.1 * ROUNDING))

    assert proof.distances[0].allowed == pytest.approx(FACTOR * ROUNDING)


def test_a_reference_that_does_not_tell_what_rounding_does_proves_nothing():
    proof = verdict(shows(), roundings=())

    assert (proof.verdict, proof.reasons) == ("no proof", ("the reference does not report the effect of rounding",))


def test_a_small_loss_is_no_truer_than_numbers_around_one():
    truth = TRUTH / 1000

    near, far = truth.copy(), truth.copy()
    near[19] += 4 * FLOAT32_SPACING
    far[19] += 6 * FLOAT32_SPACING

    assert verdict(shows(losses=[near]), roundings=(0.0,), by_worker=[truth]).verdict == "agrees"
    assert "loss of step 19" in verdict(shows(losses=[far]), roundings=(0.0,), by_worker=[truth]).reasons[0]


def test_a_rounding_that_hits_the_truth_by_luck_still_allows_float32_rounding():
    proof = verdict(shows(losses=[TRUTH * (1 + 4 * FLOAT32_SPACING)]), roundings=(0.0,))

    assert proof.distances[0].allowed == pytest.approx(5 * FLOAT32_SPACING)
    assert proof.verdict == "agrees"


def test_gradients_of_another_length_or_another_direction_are_found():
    longer = verdict(shows(gradients=[tensors(scale=1.01)]))
    turned = verdict(shows(gradients=[tensors(tilt=0.01)]))

    assert "gradient norms" in longer.reasons[0]
    assert [reason.split(" is ")[0] for reason in turned.reasons] == ["gradient"]


def test_a_tensor_without_gradient_is_found():
    missing = tensors()
    del missing["fc.bias"]

    assert verdict(shows(gradients=[missing])).verdict == "not comparable"


def test_another_number_of_parameters_is_found():
    assert "parameters" in verdict(shows(parameters=PARAMETERS - 1)).reasons[0]


def test_each_rank_is_held_to_the_loss_of_its_own_half_of_the_batch():
    halves = [TRUTH * 1.1, TRUTH * 0.9]

    right = verdict(shows(losses=halves), workers=2, by_worker=halves)
    swapped = verdict(shows(losses=halves[::-1]), workers=2, by_worker=halves)
    together = verdict(shows(losses=[TRUTH] * 2, facts={"loss_over": "global"}), workers=2, by_worker=halves)

    assert (right.verdict, swapped.verdict, together.verdict) == ("agrees", "not comparable", "agrees")


def test_weights_that_drift_apart_between_ranks_are_found():
    proof = verdict(shows(weights=[tensors(), tensors(scale=1 + 1e-9)]), workers=2)

    assert "differ between ranks" in proof.reasons[0]


def test_an_approximate_strategy_must_make_the_loss_fall_and_its_distance_is_told():
    lossy = {"gradients": [tensors(tilt=0.003)] * 2}
    falls = approximated(shows(**lossy), BF16)
    rises = approximated(shows(losses=[TRUTH[::-1]] * 2, **lossy), BF16)

    assert falls.verdict == "agrees"
    assert distance_of(falls, "gradient").distance > 0.001
    assert "does not fall" in rises.reasons[0]


@pytest.mark.parametrize("approximation", [BF16, FP16_EXCHANGE, POWERSGD, LOCAL_STEPS])
@pytest.mark.parametrize("planted", [tensors(scale=2.0), tensors(scale=-1.0), tensors(tilt=0.5)])
def test_a_wrong_gradient_is_refused_though_the_loss_falls(approximation, planted):
    facts = {"exchange_error": 1e-4}
    right = approximated(shows(facts=facts), approximation)
    wrong = approximated(shows(gradients=[planted] * 2, facts=facts), approximation)

    assert (right.verdict, right.reasons) == ("agrees", ())
    assert wrong.verdict == "not comparable"
    assert wrong.reasons[0].startswith(("gradient is", "length of the gradient is"))
    assert "this approximation allows" in wrong.reasons[0]


def test_a_coarse_format_may_stray_five_times_as_far_as_the_reference_in_that_format():
    within = approximated(shows(gradients=[tensors(1 + 4.9 * COARSE)] * 2), BF16)
    beyond = approximated(shows(gradients=[tensors(1 + 5.1 * COARSE)] * 2), BF16)

    assert (within.verdict, beyond.verdict) == ("agrees", "not comparable")
    assert distance_of(within, "length").allowed == pytest.approx(FACTOR * COARSE, rel=0.5)


def test_bounds_of_approximations_add_up():
    one, two = (
        distance_of(approximated(shows(facts={"exchange_error": 0.0}), *given_up), "gradient").allowed
        for given_up in ([BF16], [BF16, FP16_EXCHANGE])
    )

    assert two - one == pytest.approx(FP16_EXCHANGE.gradient)


@pytest.mark.parametrize(("lost", "expected"), [(0.9, "agrees"), (1.0, "not comparable"), (2.0, "not comparable")])
def test_a_compressed_exchange_that_loses_all_or_more_is_refused(lost, expected):
    """A projection that is then doubled loses exactly the whole, one that is reversed more."""
    proof = approximated(shows(facts={"exchange_error": lost}), POWERSGD)

    assert proof.verdict == expected
    assert distance_of(proof, "exchange").allowed == POWERSGD.exchange


def test_what_a_bound_rests_on_is_told_beside_the_verdict():
    proof = approximated(shows(), BF16)

    assert f"bound: {BF16.because}" in proof.told
    assert proof.unbounded == ()


def test_records_from_before_the_bounds_say_what_cannot_be_known():
    coarse = approximated(shows(gradients=[tensors(2.0)] * 2), BF16, coarse=None)
    compressed = approximated(shows(), POWERSGD)

    assert coarse.verdict == compressed.verdict == "agrees"
    assert "does not report what bf16 does" in coarse.unbounded[0]
    assert distance_of(coarse, "length").allowed is None
    assert compressed.unbounded == ("what an exchange loses, because the run does not report it",)
    assert f"not bounded: {compressed.unbounded[0]}" in compressed.told


def test_a_strategy_that_declares_no_bound_is_called_not_bounded():
    proof = approximated(shows(gradients=[tensors(2.0)] * 2))

    assert (proof.verdict, proof.unbounded) == (
        "agrees",
        ("the gradient, because the framework declares no bound for what it gives up",),
    )


def test_local_steps_are_exact_at_first_and_not_bounded_later():
    averaged_at_first = approximated(shows(), LOCAL_STEPS)
    never_averaged = approximated(shows(gradients=[tensors(tilt=0.5)] * 2), LOCAL_FROM_THE_START)

    assert distance_of(averaged_at_first, "gradient").allowed < 1e-5
    assert averaged_at_first.unbounded == (LOCAL_STEPS.beyond,)
    assert never_averaged.verdict == "agrees"
    assert never_averaged.unbounded == ("the gradient, because no gradient is ever averaged", LOCAL_STEPS.beyond)


def test_an_asynchronous_strategy_is_bounded_by_its_staleness_alone():
    told = verdict(shows(facts={"staleness": {"mean": 1.2, "max": 3}}), workers=2, strategy_class="asynchronous")
    silent = verdict(shows(), workers=2, strategy_class="asynchronous")

    assert told.unbounded == ("gradients, but for their staleness, because each worker applies its own",)
    assert silent.unbounded == ("gradients, because each worker applies its own, and how late is not known",)


def test_an_asynchronous_strategy_tells_its_staleness_or_that_it_is_not_known():
    told = verdict(shows(facts={"staleness": {"mean": 1.2, "max": 3}}), workers=2, strategy_class="asynchronous")
    silent = verdict(shows(), workers=2, strategy_class="asynchronous")

    assert "staleness 1.2 updates on average, 3 at most" in told.told
    assert "staleness is not known" in silent.told


def test_a_compressed_exchange_tells_what_it_loses():
    told = verdict(shows(facts={"compression_error": 0.021}), workers=2, strategy_class="approximate")

    assert "compression loses 0.021 of the gradient" in told.told


def test_what_has_not_run_or_failed_is_no_proof_and_no_disagreement():
    def failed(trial):
        return replace(
            proof_record(trial), outcome=replace(make_record().outcome, kind=OutcomeKind.FAILED, reason="out of luck")
        )

    assert verdict(None).reasons == ("its proof run has not been run",)
    assert (verdict(failed).verdict, verdict(failed).reasons) == ("no proof", ("its proof run failed: out of luck",))


def test_trials_that_compute_the_same_share_one_proof():
    trials = [make_trial(batch=batch, workers=workers, threads=1) for batch in (16, 32) for workers in (1, 2, 4)]

    assert len({proof_run(trial).id for trial in trials}) == 2


def test_frameworks_that_train_the_same_share_their_judge():
    trials = [make_trial(framework=name) for name in ("torch", "jax")]
    cases = proof_cases(trials, reference=replace(trials[0].framework, name="reference"))

    assert [trial.framework.name for trial in runs_of(cases)] == ["reference", "torch", "jax"]


def distance_of(proof, what):
    (found,) = (one for one in proof.distances if one.what.startswith(what))
    return found


@pytest.mark.parametrize(("factor", "expected"), [(4.9, "agrees"), (5.1, "not comparable")])
def test_weights_after_the_last_step_are_held_to_the_reference(factor, expected):
    proof = verdict(shows(weights=[tensors(1 + factor * ROUNDING)]))

    assert proof.verdict == expected
    assert distance_of(proof, "weights after 20 steps").ok == (expected == "agrees")


def test_weights_that_are_not_shown_do_not_agree():
    part = {name: tensor for name, tensor in tensors().items() if name != "fc.bias"}

    proof = verdict(shows(weights=[part]))

    assert proof.verdict == "not comparable"


def norm_statistics(mean, variance):
    return {
        f"norm.running_{what}": describe(f"norm.running_{what}", np.full(4, value))
        for what, value in (("mean", mean), ("var", variance))
    }


def test_a_wrong_momentum_of_batch_norm_shows_and_a_biased_variance_does_not():
    right = norm_statistics(0.5, 1.0)

    biased = verdict(shows(statistics=norm_statistics(0.5, 0.9)), statistics=right)
    wrong = verdict(shows(statistics=norm_statistics(0.05, 1.0)), statistics=right)

    assert biased.verdict == "agrees"
    assert [reason.split(" is ")[0] for reason in wrong.reasons] == ["batch-norm means after 20 steps"]


def test_devices_of_one_process_must_hold_the_same_weights():
    proof = verdict(shows(facts={"weights_equal_on_devices": False}))

    assert proof.reasons == ("weights differ between the devices of a process after 20 steps",)


def test_the_first_loss_has_a_ceiling_whatever_the_roundings_say():
    proof = verdict(shows(losses=[TRUTH * (1 + 1e-3)]), roundings=(1e-3,))

    assert proof.verdict == "not comparable"
    assert proof.reasons[0].startswith("loss of step 0")


def test_proofs_that_would_be_called_the_same_say_what_sets_them_apart():
    plain, other = (make_trial(framework="torch", knobs={"onednn": onednn}) for onednn in (True, False))
    cases = proof_cases([plain, other], reference=plain.framework)

    names = [proof.name for proof in prove(cases, {}).proofs.values()]

    assert len(set(names)) == 2
    assert "onednn=off" in names[1]
