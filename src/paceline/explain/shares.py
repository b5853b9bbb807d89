"""The parts of a step by cause: measured beside modelled. Joins what timers tell with what only the model can. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.explain.explanation import EfficiencyLoss, Share
from paceline.explain.finding import CAUSES, COPY
from paceline.explain.spent import EXCHANGE, Spent
from paceline.explain.without import ModelledTrial
from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, LATENCY, shares, step_terms
from paceline.stats.known_by import weakest


def seconds_by_cause(spent: Spent, setting: ModelledTrial) -> dict[str, float]:
    """Seconds a step of each of CAUSES.

    Timers see an exchange, and computing that something slows down. What of the exchange is latency, and what of
    computing the exchange behind it has cost, is the model's word.
    """
    seconds = dict(spent.seconds)
    exchange = seconds.pop(EXCHANGE)
    terms = step_terms(setting.calibration.vector, setting.conditions, setting.calibration.straggling)
    slowed = min(terms.contention_s / terms.step_s * spent.step_s, seconds[COMPUTE])
    found = {
        **seconds,
        LATENCY: exchange * terms.latent,
        BANDWIDTH: exchange * (1 - terms.latent),
        COMPUTE: seconds[COMPUTE] - slowed,
        CONTENTION: seconds[CONTENTION] + slowed,
    }
    return {cause: found[cause] for cause in CAUSES}


def shares_of(spent: Spent | None, setting: ModelledTrial) -> tuple[Share, ...]:
    """One a cause."""
    measured: Mapping[str, float] = {}
    if spent is not None:
        seconds = seconds_by_cause(spent, setting)
        measured = {cause: value / spent.step_s for cause, value in seconds.items()}
    terms = step_terms(setting.calibration.vector, setting.conditions, setting.calibration.straggling)
    starved = setting.starved * (terms.forward_s + terms.backward_s) / terms.step_s
    by_class = {COPY: 0.0, **shares(terms)}
    modelled = {**by_class, COMPUTE: by_class[COMPUTE] - starved, CONTENTION: by_class[CONTENTION] + starved}
    return tuple(Share(cause=one, measured=measured.get(one), modelled=modelled[one]) for one in CAUSES)


def loss_between(
    few: tuple[Spent, ModelledTrial, int, float], many: tuple[Spent, ModelledTrial, int, float]
) -> EfficiencyLoss | None:
    """How what is lost from one size to another splits: by the seconds that each sample costs a worker.

    Args:
        few, many: what was measured, the model's view, workers, and samples a worker and step.

    Returns:
        None where nothing is lost.
    """
    (spent, setting, workers, batch), (other, other_setting, more, other_batch) = few, many
    before = {cause: value / batch for cause, value in seconds_by_cause(spent, setting).items()}
    after = {cause: value / other_batch for cause, value in seconds_by_cause(other, other_setting).items()}
    lost = sum(after.values()) - sum(before.values())
    if lost <= 0:
        return None
    return EfficiencyLoss(
        from_workers=workers,
        to_workers=more,
        efficiency=sum(before.values()) / sum(after.values()),
        parts={cause: (after[cause] - before[cause]) / lost for cause in CAUSES},
        by=weakest(spent.by, other.by),
    )
