"""Changes to the model's inputs, such as "bandwidth=x4,compression=fp16,bucket=5MB", and their effect. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.errors import PacelineError, did_you_mean
from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.feeding import arrival
from paceline.model.equations.parameters import INDEX
from paceline.model.equations.stragglers import ALIKE
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.predict import with_buckets
from paceline.model.forecast.simulated_changes import Change, Changed, jobs, oversubscription, slow_host, unequal_hosts
from paceline.units import BYTES, BYTES_PER_SECOND, SECONDS, parse_quantity

COMPRESSIONS = {"none": 1.0, "fp16": 0.5, "bf16": 0.5, "int8": 0.25}
"""Fraction of the bytes that remains. The time to encode and decode is not counted."""
BUCKET_SIZES = tuple(2.0**power for power in range(16, 29))
"""Bucket sizes to try when looking for the best one: 64 KiB to 256 MiB."""


def parse_changes(text: str) -> list[Change]:
    """Parse the changes that a user wrote.

    Raises:
        PacelineError: A name is unknown or a value is invalid.
    """
    changes = []
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        # Accept slow_host for slow-host.
        name = name.replace("_", "-")
        if name not in INPUTS or not value:
            suggestion = did_you_mean(name, INPUTS)
            raise PacelineError(
                f"--what-if {part.strip()!r}: unknown input", hint=f"{suggestion}; write it like bandwidth=x4"
            )
        try:
            changes.append(INPUTS[name](value))
        except ValueError as error:
            raise PacelineError(
                f"--what-if {name}={value}: {error}", hint="give a factor (x4) or a quantity (25Gbit)"
            ) from None
    return changes


def _factor(value: str) -> float | None:
    """The factor in "x4"; None for a quantity."""
    if not value.startswith("x"):
        return None
    factor = float(value[1:])
    if not 0 < factor < np.inf:
        raise ValueError("a factor should be a number above zero")
    return factor


def _above_zero(value: str, units: dict[str, float]) -> float:
    quantity = parse_quantity(value, units)
    if quantity <= 0:
        raise ValueError("should be above zero")
    return quantity


def _bandwidth(value: str) -> Change:
    factor = _factor(value)
    rate = None if factor else _above_zero(value, BYTES_PER_SECOND)

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        if factor and conditions.bandwidth is None:
            # The links are unlimited, so only the library can become faster.
            return _scaled(calibration, "byte_s", 1 / factor), conditions
        wanted = conditions.bandwidth * factor if factor and conditions.bandwidth else rate
        return calibration, conditions.change(bandwidth=wanted)

    return apply


def _latency(value: str) -> Change:
    factor = _factor(value)
    seconds = None if factor else parse_quantity(value, SECONDS)
    if seconds is not None and seconds < 0:
        raise ValueError("a latency cannot be negative")

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        if factor is None:
            return calibration, conditions.change(latency_s=seconds)
        changed = conditions.change(latency_s=conditions.latency_s * factor if conditions.latency_s else None)
        return _scaled(calibration, "alpha_s", factor), changed

    return apply


def _compression(value: str) -> Change:
    if value not in COMPRESSIONS:
        raise ValueError(did_you_mean(value, COMPRESSIONS))

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        left = COMPRESSIONS[value]
        return calibration, conditions.change(messages=tuple(size * left for size in conditions.messages))

    return apply


def _bucket(value: str) -> Change:
    size = np.inf if value == "all" else _above_zero(value, BYTES)
    return lambda calibration, conditions: (calibration, with_buckets(calibration, conditions, size))


def _compute(value: str) -> Change:
    factor = _factor(value)
    if factor is None:
        raise ValueError("write it as a factor: compute=x2 means twice as fast")
    names = ("forward_s", "forward_per_sample_s", "backward_s", "backward_per_sample_s", "update_s")

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        for name in names:
            calibration = _scaled(calibration, name, 1 / factor)
        return calibration, conditions

    return apply


def _input(value: str) -> Change:
    factor = _factor(value)
    if factor is None:
        raise ValueError("write it as a factor: input=x2 means twice as fast")

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        changed = _scaled(calibration, "input_s", 1 / factor)
        return _scaled(changed, "input_per_sample_s", 1 / factor), conditions

    return apply


def _loaders(value: str) -> Change:
    count = int(value)
    if count < 0:
        raise ValueError("should be 0 or more")

    def apply(calibration: Calibration, conditions: Conditions) -> Changed:
        kind, _, measured = calibration.family.input.partition("/")
        if kind != "pipeline":
            raise PacelineError(
                f"--what-if loaders={value}: input is {kind}, which needs no loaders",
                hint='calibrate a study with input = "pipeline"',
            )
        # The fitted input time is the interval between batches with the measured number of loaders.
        factor, prefetch = arrival(float(max(1, int(measured))), loaders=count)
        changed = _scaled(calibration, "input_s", factor)
        return _scaled(changed, "input_per_sample_s", factor), conditions.change(prefetch=prefetch)

    return apply


def _accumulate(value: str) -> Change:
    passes = int(value)
    if passes < 1:
        raise ValueError("should be at least 1")
    return lambda calibration, conditions: (calibration, conditions.change(passes=passes))


def _every(value: str) -> Change:
    steps = int(value)
    if steps < 1:
        raise ValueError("should be at least 1")
    return lambda calibration, conditions: (calibration, conditions.change(every=steps))


def _stragglers(value: str) -> Change:
    if value != "none":
        raise ValueError("the only value is none: stragglers=none")
    return lambda calibration, conditions: (replace(calibration, straggling=ALIKE), conditions)


INPUTS: Mapping[str, Callable[[str], Change]] = {
    "bandwidth": _bandwidth,
    "latency": _latency,
    "compression": _compression,
    "bucket": _bucket,
    "compute": _compute,
    "input": _input,
    "loaders": _loaders,
    "accumulate": _accumulate,
    "average-every": _every,
    "stragglers": _stragglers,
    "slow-host": slow_host,
    "unequal-hosts": unequal_hosts,
    "oversubscription": oversubscription,
    "jobs": jobs,
}
"""Maps the name of an input to the parser of its value."""


def _scaled(calibration: Calibration, name: str, factor: float) -> Calibration:
    def times(matrix: Floats) -> Floats:
        changed = matrix.copy()
        changed[..., INDEX[name]] *= factor
        return changed

    return replace(calibration, vector=times(calibration.vector), draws=times(calibration.draws))


def changed(calibration: Calibration, conditions: Conditions, changes: Sequence[Change]) -> Changed:
    """Change all changes in order."""
    for change in changes:
        calibration, conditions = change(calibration, conditions)
    return calibration, conditions


SINGLE_CHANGES = ("bandwidth=x2", "latency=x0.5", "compute=x2", "input=x2", "compression=fp16", "stragglers=none")
"""The changes to try when looking for the one that helps most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeEffect:
    """What a single change does to a step."""

    change: str
    """As it is written after `--what-if`."""
    step_ratio: float
    """Step time after the change relative to before."""


def single_changes(calibration: Calibration, conditions: Conditions) -> list[ChangeEffect]:
    """The effects of SINGLE_CHANGES and of the best bucket size, best first."""

    def step_s(calibration: Calibration, conditions: Conditions) -> float:
        return step_terms(calibration.vector, conditions, calibration.straggling).step_s

    steps_s = {text: step_s(*changed(calibration, conditions, parse_changes(text))) for text in SINGLE_CHANGES}
    if (best := best_bucket(calibration, conditions)) is not None:
        size, seconds = best
        steps_s[f"bucket={size / 2**20:g}MiB"] = seconds
    before = step_s(calibration, conditions)
    effects = [ChangeEffect(change=text, step_ratio=seconds / before) for text, seconds in steps_s.items()]
    return sorted(effects, key=lambda effect: effect.step_ratio)


def best_bucket(calibration: Calibration, conditions: Conditions) -> tuple[float, float] | None:
    """(bytes, step time) of the best bucket size; None where gradients are not sent in buckets."""
    if not calibration.bucketed or calibration.ready is None or conditions.workers < 2:
        return None
    steps = [
        step_terms(calibration.vector, with_buckets(calibration, conditions, size), calibration.straggling).step_s
        for size in BUCKET_SIZES
    ]
    index = int(np.argmin(steps))
    return BUCKET_SIZES[index], steps[index]
