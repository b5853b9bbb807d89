"""How far what a proof run shows is from the reference: of losses, gradients, weights and statistics. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paceline.compare.proof_evidence import Floats, ShownTensors
from paceline.record.fact import Tensors
from paceline.stats.estimate import finite

FLOAT32_SPACING = 2.0**-23
NEGLIGIBLE = 1e-5
"""A tensor whose gradient is a smaller part of the whole than this is held to that part: its own norm is rounding."""
MEANS = ".running_mean"
"""Batch-norm statistics that are held to the reference. Variances are not: some frameworks correct them for the size of
the sample and some do not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """How far something is from the reference, and how far it might be."""

    what: str
    """In words: "loss of step 0" …"""
    distance: float
    """Relative."""
    allowed: float | None
    """None: reported only, because nothing bounds it."""

    @property
    def ok(self) -> bool:
        return self.allowed is None or self.distance <= self.allowed

    def to_json(self) -> dict[str, object]:
        return {"what": self.what, "distance": finite(self.distance), "allowed": finite(self.allowed), "ok": self.ok}


def loss_distance(losses: Floats, truth: Floats) -> Floats:
    """Relative distance of the loss at each step, the largest over ranks."""
    return np.asarray(np.max(np.abs(losses - truth) / np.abs(truth), axis=0))


def norm_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """The largest relative distance of a tensor's gradient norm."""
    whole = _norm(reference.gradients)
    return max(
        abs(shown.gradients[name]["norm"] - tensor["norm"]) / max(tensor["norm"], NEGLIGIBLE * whole)
        if name in shown.gradients
        else np.inf
        for name, tensor in reference.gradients.items()
    )


def gradient_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """Distance of the whole gradient of step 0 over its norm."""
    return _whole_distance(shown.gradients, reference.gradients)


def length_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """By how much the whole gradient of step 0 is too long or too short, over its norm: exact, where the distance is
    known from sketches to a quarter.
    """
    length = _norm(reference.gradients)
    return abs(_norm(shown.gradients) - length) / length


def weights_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """Distance of all weights after the last step over their norm: shows a decay that no loss shows."""
    return _whole_distance(shown.weights, reference.weights)


def means_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """Distance of batch norm's running means over their norm: shows a wrong momentum of the statistics."""
    means = {name: tensor for name, tensor in reference.statistics.items() if name.endswith(MEANS)}
    return _whole_distance(shown.statistics, means)


def _whole_distance(tensors: Tensors, reference: Tensors) -> float:
    """From the sketches, all tensors as one vector; infinite where one is missing."""
    if not reference.keys() <= tensors.keys():
        return np.inf
    squares = [
        np.mean(np.subtract(tensors[name]["sketch"], tensor["sketch"]) ** 2) for name, tensor in reference.items()
    ]
    return float(np.sqrt(np.sum(squares))) / _norm(reference)


def _norm(tensors: Tensors) -> float:
    return float(np.sqrt(sum(tensor["norm"] ** 2 for tensor in tensors.values())))
