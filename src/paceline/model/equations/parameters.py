"""The model's parameters, each with a name, a unit, bounds and a meaning. Calibration fits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """One parameter of the model."""

    name: str
    unit: str
    doc: str
    high: float = np.inf
    default: float = 0.0
    """Value if no observation determines it."""
    unsure: float | None = None
    """Uncertainty of the default; None for that of a typical parameter (`problem.UNSURE`)."""


UNKNOWNS = (
    Unknown(name="forward_s", unit="s", doc="forward pass, fixed part"),
    Unknown(name="forward_per_sample_s", unit="s", doc="forward pass, per sample"),
    Unknown(name="backward_s", unit="s", doc="backward pass, fixed part"),
    Unknown(name="backward_per_sample_s", unit="s", doc="backward pass, per sample"),
    Unknown(name="update_s", unit="s", doc="optimizer update"),
    Unknown(name="overhead_s", unit="s", doc="framework overhead per step"),
    Unknown(name="input_s", unit="s", doc="input per step, fixed part"),
    Unknown(name="input_per_sample_s", unit="s", doc="input per step, per sample"),
    Unknown(name="alpha_s", unit="s", doc="latency of one message to a neighbour"),
    Unknown(name="byte_s", unit="s/B", doc="time per byte in the library, on an unlimited link"),
    Unknown(
        name="wire",
        unit="1",
        doc="time per byte on a link, relative to line rate",
        high=10.0,
        default=1.05,
        unsure=0.1,
    ),
    Unknown(
        name="start",
        unit="1",
        doc="fraction of the backward pass before the exchange starts",
        high=1.0,
        default=1.0,
        unsure=0.5,
    ),
    Unknown(name="serving", unit="s/B", doc="CPU time per byte that local servers take from a worker"),
    Unknown(
        name="contention", unit="1", doc="compute time lost per second of hidden communication", high=1.0, unsure=0.2
    ),
)
NAMES = tuple(unknown.name for unknown in UNKNOWNS)
HIGH = np.array([unknown.high for unknown in UNKNOWNS])
DEFAULT = np.array([unknown.default for unknown in UNKNOWNS])
INDEX = {name: index for index, name in enumerate(NAMES)}


def as_vector(values: Mapping[str, float]) -> Floats:
    """Values in the order of UNKNOWNS; missing ones have their default."""
    return np.array([values.get(unknown.name, unknown.default) for unknown in UNKNOWNS])


def as_mapping(vector: Floats) -> dict[str, float]:
    return dict(zip(NAMES, map(float, vector), strict=True))


def values_of(vectors: Floats, name: str) -> Floats:
    """One parameter of all vectors, which are rows."""
    values: Floats = vectors[:, INDEX[name]]
    return values
