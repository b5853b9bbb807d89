"""How far what a proof run shows is from the reference: of losses, gradients, weights and statistics. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paceline.compare.proof_evidence import Floats, ShownTensors
from paceline.record.fact import Tensors
from paceline.stats.estimate import finite

FLOAT32_SPACING = 2.0**-23
NEGLIGIBLE = 1e-5
"""If the gradient of a tensor is a smaller part of the whole gradient, its distance is relative to this part instead of
to its own norm, which is mostly rounding."""
MEANS = ".running_mean"
"""The batch-norm statistics that are compared with the reference. Variances are not compared, because some frameworks
correct them for the sample size and some do not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """The distance of a quantity from the reference, and the largest allowed distance."""

    what: str
    """The quantity in words, e.g. "loss of step 0"."""
    distance: float
    """The relative distance."""
    allowed: float | None
    """The largest allowed distance; None if it is only reported, because nothing bounds it."""

    @property
    def ok(self) -> bool:
        return self.allowed is None or self.distance <= self.allowed

    def to_json(self) -> dict[str, object]:
        return {"what": self.what, "distance": finite(self.distance), "allowed": finite(self.allowed), "ok": self.ok}


def loss_distance(losses: Floats, truth: Floats) -> Floats:
    """Returns the relative distance of the loss at each step, the largest over ranks."""
    return np.asarray(np.max(np.abs(losses - truth) / np.abs(truth), axis=0))


def norm_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """Returns the largest relative distance of the gradient norm of a tensor."""
    whole = _norm(reference.gradients)
    return max(
        abs(shown.gradients[name]["norm"] - tensor["norm"]) / max(tensor["norm"], NEGLIGIBLE * whole)
        if name in shown.gradients
        else np.inf
        for name, tensor in reference.gradients.items()
    )


def gradient_distance(shown: ShownTensors, reference: ShownTensors) -> float:
    """Returns the distance of the whole gradient of step 0 ÷ its norm."""
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
