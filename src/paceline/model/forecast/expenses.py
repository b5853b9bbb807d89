"""What an epoch takes: its time, cost and energy, and whether the memory of a worker is enough. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.model.forecast.predict import Prediction
from paceline.stats.estimate import Estimate

HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Sizes and prices that turn a step into what is paid for; None for what is not given."""

    epoch_samples: int | None = None
    price: float | None = None
    """Price per host and hour, in the user's currency."""
    power_w: float | None = None
    """Power per host."""
    memory_bytes: float | None = None
    """Memory per worker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expenses:
    """What one configuration takes; None for what the given rates do not say."""

    epoch: Estimate | None = None
    """Seconds per epoch."""
    cost: Estimate | None = None
    """Cost of an epoch, in the currency of the price."""
    energy: Estimate | None = None
    """Joules per epoch."""
    fits: bool | None = None
    """Whether the memory of a worker is enough."""

    def to_json(self) -> dict[str, object]:
        amounts = {"epoch_s": self.epoch, "cost": self.cost, "energy_j": self.energy}
        given: dict[str, object] = {name: amount.to_json() for name, amount in amounts.items() if amount is not None}
        return given if self.fits is None else {**given, "fits": self.fits}


def expenses_of(prediction: Prediction, rates: Rates) -> Expenses:
    """What a predicted configuration takes at these rates."""
    epoch = prediction.throughput.over(rates.epoch_samples, "s") if rates.epoch_samples else None
    hosts, memory = prediction.conditions.hosts, prediction.memory_bytes
    return Expenses(
        epoch=epoch,
        cost=None if epoch is None or rates.price is None else epoch.times(hosts * rates.price / HOUR_S, "currency"),
        energy=None if epoch is None or rates.power_w is None else epoch.times(hosts * rates.power_w, "J"),
        fits=None if memory is None or rates.memory_bytes is None else memory <= rates.memory_bytes,
    )
