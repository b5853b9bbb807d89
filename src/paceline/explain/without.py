"""Predicts the step without some of its causes, as if a resource were infinitely fast. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from paceline.explain.explanation import Rung
from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import INDEX
from paceline.model.equations.stragglers import ALIKE
from paceline.model.equations.terms import BANDWIDTH, CONTENTION, INPUT, LATENCY, OVERHEAD, STRAGGLER
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.predict import estimated, steps_of
from paceline.stats.estimate import Estimate

GONE = {
    INPUT: ("input_s", "input_per_sample_s"),
    LATENCY: ("alpha_s",),
    BANDWIDTH: ("byte_s", "wire"),
    CONTENTION: ("contention",),
    OVERHEAD: ("overhead_s",),
}
"""Cause → the parameters that become zero when it is removed."""
COMPUTING = ("forward_s", "forward_per_sample_s", "backward_s", "backward_per_sample_s")
REMOVABLE = (*GONE, STRAGGLER)
WORTH_A_RUNG = 0.01
"""The smallest relative gain for which a cause is added to the ladder."""
MOST_DRAWS = 60
"""The number of draws of the calibration that are used: enough for a 90 % interval of a ratio."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelledTrial:
    """A trial in the terms of the model."""

    calibration: Calibration
    conditions: Conditions
    starved: float = 0.0
    """The fraction of computation spent waiting for a core; the model has only computation as a whole."""

    def step_s(self, removed: Collection[str] = ()) -> float:
        """Predicts the step without these causes."""
        return float(self._steps_s(self.calibration.vector[None, :], removed)[0])

    def _steps_s(self, vectors: Floats, removed: Collection[str] = ()) -> Floats:
        """Predicts the step without these causes, for each vector."""
        moved = vectors.copy()
        for cause in removed:
            for name in GONE.get(cause, ()):
                moved[:, INDEX[name]] = 0.0
        if CONTENTION in removed:
            moved[:, [INDEX[name] for name in COMPUTING]] *= 1 - self.starved
        conditions = replace(self.conditions, latency_s=None) if LATENCY in removed else self.conditions
        straggling = ALIKE if STRAGGLER in removed else self.calibration.straggling
        return steps_of(moved, conditions, straggling)

    def gain(self, removed: Collection[str]) -> Estimate:
        """Predicts the step now ÷ the step without these causes, with its interval."""
        value = self.step_s() / self.step_s(removed)
        draws = self.calibration.draws[:MOST_DRAWS]
        ratios = self._steps_s(draws) / self._steps_s(draws, removed)
        return estimated(value, ratios, self.calibration.residual, "1", self.calibration.by)


def ladder(setting: ModelledTrial, measured_s: float) -> tuple[Rung, ...]:
    """Returns the causes in the order in which to remove them, until only computation is left."""
    rungs: list[Rung] = []
    removed: list[str] = []
    whole = setting.step_s()
    before = whole
    while left := [cause for cause in REMOVABLE if cause not in removed]:
        steps = {cause: setting.step_s([*removed, cause]) for cause in left}
        best = min(steps, key=lambda cause: steps[cause])
        if steps[best] > before * (1 - WORTH_A_RUNG):
            break
        removed.append(best)
        before = steps[best]
        rungs.append(Rung(cause=best, step_s=measured_s * before / whole, faster=whole / before))
    return tuple(rungs)
