"""What-if changes without a closed form: unequal hosts and shared links. Pure.

They are parsed and checked here and answered by event simulation (`model.equations.surroundings`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from paceline.errors import PacelineError
from paceline.model.equations.conditions import Conditions
from paceline.model.fitting.calibration import Calibration
from paceline.plan.vocabulary import REPLICATED

Changed = tuple[Calibration, Conditions]
Change = Callable[[Calibration, Conditions], Changed]
"""Makes other inputs of the model from those that are given."""

MOST_JOBS = 64
"""Limit, because each job is simulated message by message."""
MOST_FACTOR = 1e6
"""A host or link that is slower by more than this has failed."""


def slow_host(value: str) -> Change:
    """slow-host=x2: one host computes half as fast as the others."""
    factor = _at_least_one(value)
    return lambda calibration, conditions: _with_hosts("slow-host", calibration, conditions, (factor,), repeating=False)


def unequal_hosts(value: str) -> Change:
    """unequal-hosts=1/1.5: slowness of each host; the pattern repeats over all hosts."""
    factors = tuple(_number(part, "factors separated by slashes, such as 1/1/1.5") for part in value.split("/"))
    if len(factors) < 2:
        raise ValueError("should be at least two factors separated by slashes, such as 1/1.5")
    return lambda calibration, conditions: _with_hosts(
        "unequal-hosts", calibration, conditions, factors, repeating=True
    )


def oversubscription(value: str) -> Change:
    """oversubscription=x4: the network between hosts carries a quarter of what they can send together."""
    factor = _at_least_one(value)

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        _check("oversubscription", conditions)
        return calibration, conditions.change(oversubscription=factor)

    return apply


def jobs(value: str) -> Change:
    """jobs=2: two equal jobs, including this one, share the links."""
    if not value.isdecimal() or not 1 <= int(value) <= MOST_JOBS:
        raise ValueError(f"should be a whole number of jobs, 1 to {MOST_JOBS}")
    count = int(value)

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        _check("jobs", conditions)
        return calibration, conditions.change(jobs=count)

    return apply


def _with_hosts(
    name: str, calibration: Calibration, conditions: Conditions, slowness: tuple[float, ...], *, repeating: bool
) -> Changed:
    _check(name, conditions)
    if conditions.slowness:
        raise PacelineError(
            f"--what-if {name}: the hosts are already unequal", hint="use slow-host or unequal-hosts, and only once"
        )
    return calibration, conditions.change(slowness=slowness, repeating=repeating)


def _check(name: str, conditions: Conditions) -> None:
    if conditions.sharing != REPLICATED:
        raise PacelineError(
            f"--what-if {name} needs a strategy that averages gradients; this one is {conditions.sharing}",
            hint="choose one that averages gradients: --strategy ddp",
        )


def _at_least_one(value: str) -> float:
    factor = _number(value.removeprefix("x"), "a factor such as x2")
    if factor < 1:
        raise ValueError("should be a factor of at least 1, such as x2")
    return factor


def _number(text: str, form: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"should be {form}") from None
    if not math.isfinite(number) or not 1 / MOST_FACTOR <= number <= MOST_FACTOR:
        raise ValueError(f"should be {form}, each above zero and at most {MOST_FACTOR:g}")
    return number
