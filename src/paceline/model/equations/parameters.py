"""The model's unknowns: what calibration fits and prediction needs. Each has a name, a unit, bounds and a meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from paceline.model.equations.step import Floats

Vector: TypeAlias = "Floats | list[float]"
"""A value of each unknown. A list is read several times faster than an array, one number at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """One parameter."""

    name: str
    unit: str
    doc: str
    high: float = np.inf
    default: float = 0.0
    """Where nothing speaks about it."""
    unsure: float | None = None
    """By how much that may be off; None: by as much as such a parameter usually is (`calibrate`)."""


UNKNOWNS = (
    Unknown(name="forward_s", unit="s", doc="forward pass, whatever the batch"),
    Unknown(name="forward_per_sample_s", unit="s", doc="forward pass, for each sample"),
    Unknown(name="backward_s", unit="s", doc="backward pass, whatever the batch"),
    Unknown(name="backward_per_sample_s", unit="s", doc="backward pass, for each sample"),
    Unknown(name="update_s", unit="s", doc="optimizer"),
    Unknown(name="overhead_s", unit="s", doc="the framework's own, in every step"),
    Unknown(name="input_s", unit="s", doc="input of a step, whatever the batch"),
    Unknown(name="input_per_sample_s", unit="s", doc="input of a step, for each sample"),
    Unknown(name="alpha_s", unit="s", doc="one message to a neighbour, whatever its size"),
    Unknown(name="byte_s", unit="s/B", doc="a byte through the library, on a link that is no limit"),
    Unknown(
        name="wire",
        unit="1",
        doc="time of a byte on a link, over what its bandwidth says",
        high=10.0,
        default=1.05,
        unsure=0.1,
    ),
    Unknown(
        name="start",
        unit="1",
        doc="part of the backward pass before the exchange may begin",
        high=1.0,
        default=1.0,
        unsure=0.5,
    ),
    Unknown(name="serving", unit="s/B", doc="a byte through servers on a worker's host, taken from its core"),
    Unknown(
        name="contention", unit="1", doc="computing lost for each second of exchange behind it", high=1.0, unsure=0.2
    ),
)
NAMES = tuple(unknown.name for unknown in UNKNOWNS)
HIGH = np.array([unknown.high for unknown in UNKNOWNS])
DEFAULT = np.array([unknown.default for unknown in UNKNOWNS])
INDEX = {name: index for index, name in enumerate(NAMES)}


def as_vector(values: Mapping[str, float]) -> Floats:
    """Values in the order of UNKNOWNS; what is missing is at its default."""
    return np.array([values.get(unknown.name, unknown.default) for unknown in UNKNOWNS])


def as_mapping(vector: Floats) -> dict[str, float]:
    return dict(zip(NAMES, map(float, vector), strict=True))
