"""Splits a step by cause, from the timers of the runs and the calibrated model. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.explain.explanation import EfficiencyLoss, Share
from paceline.explain.finding import CAUSES, COPY
from paceline.explain.spent import EXCHANGE, Spent
from paceline.explain.without import ModelledTrial
from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, LATENCY, shares, step_terms
from paceline.stats.known_by import weakest


def seconds_by_cause(spent: Spent, setting: ModelledTrial) -> dict[str, float]:
    """Returns the seconds per step of each of CAUSES.

    Timers measure the exchange as a whole, and computation including what slows it down. The model splits the exchange
    into latency and bandwidth, and says how much an overlapped exchange slows computation down.
    """
    seconds = dict(spent.seconds)
    exchange = seconds.pop(EXCHANGE)
    terms = step_terms(setting.calibration.vector, setting.conditions, setting.calibration.straggling)
    slowed = min(terms.contention_s / terms.step_s * spent.step_s, seconds[COMPUTE])
    by_cause = {
        **seconds,
        LATENCY: exchange * terms.latent,
        BANDWIDTH: exchange * (1 - terms.latent),
        COMPUTE: seconds[COMPUTE] - slowed,
        CONTENTION: seconds[CONTENTION] + slowed,
    }
    return {cause: by_cause[cause] for cause in CAUSES}


def shares_of(spent: Spent | None, setting: ModelledTrial) -> tuple[Share, ...]:
    """Returns one share per cause."""
    measured: Mapping[str, float] = {}
    if spent is not None:
        seconds = seconds_by_cause(spent, setting)
        measured = {cause: value / spent.step_s for cause, value in seconds.items()}
    terms = step_terms(setting.calibration.vector, setting.conditions, setting.calibration.straggling)
    starved = setting.starved * (terms.forward_s + terms.backward_s) / terms.step_s
    by_term = {COPY: 0.0, **shares(terms)}
    modelled = {**by_term, COMPUTE: by_term[COMPUTE] - starved, CONTENTION: by_term[CONTENTION] + starved}
    return tuple(Share(cause=cause, measured=measured.get(cause), modelled=modelled[cause]) for cause in CAUSES)


def loss_between(
    few: tuple[Spent, ModelledTrial, int, float], many: tuple[Spent, ModelledTrial, int, float]
) -> EfficiencyLoss | None:
    """Splits the efficiency lost between two sizes by cause, from the seconds per sample and worker.

    Args:
        few, many: of each size the measured step, the modelled trial, the workers, and the batch per worker.

    Returns:
        The loss; None if nothing is lost.
    """
    (few_spent, few_setting, few_workers, few_batch), (many_spent, many_setting, many_workers, many_batch) = few, many
    before = {cause: value / few_batch for cause, value in seconds_by_cause(few_spent, few_setting).items()}
    after = {cause: value / many_batch for cause, value in seconds_by_cause(many_spent, many_setting).items()}
    lost = sum(after.values()) - sum(before.values())
    if lost <= 0:
        return None
    return EfficiencyLoss(
        from_workers=few_workers,
        to_workers=many_workers,
        efficiency=sum(before.values()) / sum(after.values()),
        parts={cause: (after[cause] - before[cause]) / lost for cause in CAUSES},
        by=weakest(few_spent.by, many_spent.by),
    )
