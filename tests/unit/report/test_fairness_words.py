"""What the report says of strategies that do not promise exactness."""

from __future__ import annotations

from paceline.compare import Distance, Proof
from paceline.report.fairness import fairness_sentences, fairness_table, shown_verdict


def proof(**changes):
    held = Distance(what="gradient", distance=0.006, allowed=0.028)
    told = {
        "trial": "t",
        "framework": "torch",
        "strategy": "ddp",
        "strategy_class": "approximate",
        "workload": "mlp",
        "workers": 2,
        "verdict": "agrees",
        "distances": (held,),
        "told": ("bound: bf16 keeps 8 bits of a number",),
    }
    return Proof(**{**told, **changes})


def test_a_strategy_within_all_its_bounds_says_so_with_the_bound_and_its_reason():
    (sentence,) = fairness_sentences([proof()])

    assert shown_verdict(proof()) == "in bounds"
    assert "within their bounds (at worst the gradient: 6.0e-03 (2.8e-02))" in sentence
    assert "bound: bf16 keeps 8 bits of a number" in sentence
    assert "6.0e-03 (2.8e-02)" in fairness_table([proof()], 120)


def test_a_strategy_that_nothing_bounds_is_only_said_to_learn():
    free = Distance(what="gradient", distance=0.9, allowed=None)
    unbounded = proof(distances=(free,), unbounded=("the gradient, because …",), told=())
    (sentence,) = fairness_sentences([unbounded])

    assert shown_verdict(unbounded) == "loss falls"
    assert "learn, which is all that is known of these approximate strategies" in sentence
