"""How a trial exchanges gradients and receives input, from the capabilities of its framework. Pure."""

from __future__ import annotations

from paceline.model.fitting.observe import Manner
from paceline.plan.capabilities import Capabilities
from paceline.plan.knob_values import integer
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import REPLICATED


def manner_of(trial: Trial, capabilities: Capabilities) -> Manner:
    """What the model needs to know about a trial's strategy."""
    strategy = capabilities.strategies[trial.framework.strategy]
    every = integer(trial.framework.knobs, strategy.period_knob) if strategy.period_knob else 1
    unknown = f"how strategy {trial.framework.strategy} shares a step is not modelled: it is taken as data parallel"
    return Manner(
        exchange=strategy.exchange,
        servers_per_host=strategy.servers_per_host,
        tensor_by_tensor=strategy.tensor_by_tensor,
        prefetch=capabilities.prefetches(trial),
        sharing=strategy.sharing or REPLICATED,
        unknown="" if strategy.sharing else unknown,
        every=every,
    )
