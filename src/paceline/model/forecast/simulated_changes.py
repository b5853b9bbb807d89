"""Changes without a closed form: hosts that differ, links that are shared. Read and checked here, answered by event
simulation (`model.equations.surroundings`). Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from paceline.errors import PacelineError
from paceline.model.equations.conditions import Conditions
from paceline.model.fitting.calibration import Calibration
from paceline.plan.vocabulary import REPLICATED

Changed = tuple[Calibration, Conditions]
Apply = Callable[[Calibration, Conditions], Changed]

MOST_JOBS = 64
"""Each is simulated message by message; so many on one link is beyond any cluster's schedule."""
MOST_FACTOR = 1e6
"""A host or a link that is slower by more is one that failed."""


def slow_host(value: str) -> Apply:
    """slow-host=x2: one host computes so many times slower than the others."""
    factor = _at_least_one(value)
    return lambda calibration, conditions: _with_hosts("slow-host", calibration, conditions, (factor,), repeating=False)


def unequal_hosts(value: str) -> Apply:
    """unequal-hosts=1/1.5: how many times slower each host computes, again and again over all hosts."""
    factors = tuple(_number(part, "factors with a slash between them: 1/1/1.5") for part in value.split("/"))
    if len(factors) < 2:
        raise ValueError("should be at least two factors with a slash between them: 1/1.5")
    return lambda calibration, conditions: _with_hosts(
        "unequal-hosts", calibration, conditions, factors, repeating=True
    )


def oversubscription(value: str) -> Apply:
    """oversubscription=x4: the network between hosts carries a quarter of what they can send together."""
    factor = _at_least_one(value)

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        _check("oversubscription", conditions)
        return calibration, conditions.change(oversubscription=factor)

    return apply


def jobs(value: str) -> Apply:
    """jobs=2: as many equal jobs, this one included, over the same links."""
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
            f"--what-if {name}: hosts are unequal already", hint="give one of slow-host and unequal-hosts, once"
        )
    return calibration, conditions.change(slowness=slowness, repeating=repeating)


def _check(name: str, conditions: Conditions) -> None:
    if conditions.sharing != REPLICATED:
        raise PacelineError(
            f"--what-if {name}: simulated only where gradients are averaged, and this strategy is {conditions.sharing}",
            hint="ask for a family that averages gradients: --strategy ddp",
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
