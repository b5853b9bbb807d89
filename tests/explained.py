"""Builds explanations and advice for tests, of trials that nobody explained."""

from __future__ import annotations

from paceline.explain.explanation import EfficiencyLoss, Explanation, Rung, Share, Yardstick
from paceline.explain.finding import BANDWIDTH, COMPUTE, STRAGGLER, Finding, Number, Remedy, promised
from paceline.recommend.recommendation import Advice
from paceline.stats.known_by import MEASURED, MODELLED

EXPERIMENT = '[study]\nname = "try"\nquestion = "Does <overlap> pay?"\n'


def make_finding(**changes):
    """A finding with its evidence; any field replaces what was made."""
    fields = {
        "cause": BANDWIDTH,
        "sentence": "The link carries gradients for a fifth of the step.",
        "share": 0.21,
        "gain": promised(1.27, 1.21, 1.33),
        "by": MEASURED,
        "sure": "sure: timed on every rank",
        "numbers": (Number(name="exposed exchange", value=0.0134, unit="s", by=MEASURED),),
        "records": ("run.r0.a0",),
        "change": Remedy(words="hide the exchange"),
        "experiment": EXPERIMENT,
    }
    return Finding(**(fields | changes))


def make_explanation(trial="trial-1", label="2 workers", **changes):
    """An explanation of a step of 64 ms; any field replaces what was made."""
    fields = {
        "trial": trial,
        "label": label,
        "step_s": 0.064,
        "shares": (
            Share(cause=COMPUTE, measured=0.79, modelled=0.78),
            Share(cause=BANDWIDTH, measured=None, modelled=0.21),
        ),
        "findings": (make_finding(),),
        "ladder": (Rung(cause=BANDWIDTH, step_s=0.050, faster=1.28), Rung(cause=STRAGGLER, step_s=0.049, faster=1.306)),
        "loss": EfficiencyLoss(
            from_workers=1, to_workers=2, efficiency=0.78, parts={BANDWIDTH: 0.9, STRAGGLER: 0.1}, by=MODELLED
        ),
        "yardsticks": (
            Yardstick(
                name="model", expected_s=0.063, ratio=1.016, normal=True, sentence="As long as the model expects."
            ),
        ),
        "unknown": ("how fast the device could compute",),
    }
    return Explanation(**(fields | changes))


def make_advice(sentence="Take two workers."):
    return Advice(goal="throughput", sentence=sentence, ranked=(), front=(), settling="", not_considered=())
