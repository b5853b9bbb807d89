"""The least-squares problem that fits the parameters to all observations of a family. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

import numpy as np
from scipy.optimize import least_squares

from paceline.model.equations.exchange import collective_s
from paceline.model.equations.parameters import DEFAULT, HIGH, INDEX, NAMES, UNKNOWNS
from paceline.model.equations.ready import Ready
from paceline.model.equations.step import Floats
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import ModelFamily
from paceline.model.fitting.observe import Manner, ObservedCollective, Training
from paceline.plan.vocabulary import SERVER

PRIOR = 1e-4
"""Weight of the prior relative to the measurements."""
DERIVED_WEIGHT = 0.3
"""Weight of phases derived as differences between programs, which are noisier than the step time."""
UNSURE = 3.0
"""Uncertainty of an undetermined parameter, as a multiple of its typical value."""
SERVING = 1e-8
"""Start value in seconds per byte: sockets, a sum and an update on one core."""
MOST_EVALUATIONS = 200
"""Limit per search; a longer search creeps along a flat valley without improving."""
PHASES = ("data", "forward", "backward", "communication", "update", "overhead")


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """All observations of one family."""

    family: ModelFamily
    trainings: tuple[Training, ...]
    collectives: tuple[ObservedCollective, ...] = ()
    """Stand-alone collectives of the same library on the same site."""
    ready: Ready | None = None
    manner: Manner = field(default_factory=Manner)


class Problem:
    """The residuals of a family as a function of the parameters."""

    def __init__(self, evidence: Evidence, straggling: Straggling) -> None:
        self._evidence = evidence
        self._straggling = straggling
        self._steps_s = [training.step_s for training in evidence.trainings]
        """Mean step time of each training, cached because every evaluation needs it."""
        step = float(np.median(self._steps_s))
        batch = float(np.median([training.conditions.batch for training in evidence.trainings]))
        usual = {"s": step, "s/B": 1e-9, "1": 1.0}
        self.scale = np.array(
            [
                step / batch if name.endswith("_per_sample_s") else 1e-4 if name == "alpha_s" else usual[unknown.unit]
                for name, unknown in zip(NAMES, UNKNOWNS, strict=True)
            ]
        )
        self.high = HIGH / self.scale + 1e-12
        """Upper bounds of the scaled parameters."""
        self.unsure = np.array(
            [
                UNSURE if unknown.unsure is None else unknown.unsure / scale
                for unknown, scale in zip(UNKNOWNS, self.scale, strict=True)
            ]
        )
        """Uncertainty of each parameter's prior, scaled."""
        self._first = self._guess(step)

    def residuals(self, scaled: Floats) -> Floats:
        return np.concatenate([self.of_data(scaled * self.scale), PRIOR * (scaled - self._first / self.scale)])

    def of_data(self, vector: Floats) -> Floats:
        rows: list[float] = []
        values = vector.tolist()
        for training, step_s in zip(self._evidence.trainings, self._steps_s, strict=True):
            terms = step_terms(values, training.conditions, self._straggling)
            rows.append(log(max(terms.step_s, 1e-12) / step_s))
            weight = DERIVED_WEIGHT if training.derived else 1.0
            phases = terms.phases()
            rows += [
                weight * (phases[name] - training.phases[name]) / step_s for name in PHASES if name in training.phases
            ]
            if training.handed_over_s is not None:
                rows.append(weight * (terms.exchange_s + terms.update_s - training.handed_over_s) / step_s)
        for collective in self._evidence.collectives:
            taken = np.maximum(
                collective_s(vector, collective.conditions, collective.sizes, collective.operation), 1e-12
            )
            rows += (np.log(taken / collective.seconds) / np.sqrt(len(collective.sizes))).tolist()
        return np.array(rows)

    def common(self) -> Floats:
        """Effect of a relative slowdown of whole runs on the residuals: one column per trial and per collective."""
        columns: list[list[float]] = []
        for training in self._evidence.trainings:
            weight = DERIVED_WEIGHT if training.derived else 1.0
            phases = [weight * training.phases[name] / training.step_s for name in PHASES if name in training.phases]
            if training.handed_over_s is not None:
                phases.append(weight * training.handed_over_s / training.step_s)
            columns.append([1.0, *phases])
        columns += [
            [1 / np.sqrt(len(collective.sizes))] * len(collective.sizes) for collective in self._evidence.collectives
        ]
        matrix = np.zeros((sum(len(column) for column in columns), len(columns)))
        row = 0
        for index, column in enumerate(columns):
            matrix[row : row + len(column), index] = column
            row += len(column)
        return matrix

    def noise_of_means(self, noise: float) -> Floats:
        """Standard error of each column of `common` for this noise between runs."""
        trained = [noise / np.sqrt(len(training.steps_s)) for training in self._evidence.trainings]
        probed = [max(noise, collective.noise) / np.sqrt(collective.runs) for collective in self._evidence.collectives]
        return np.array([*trained, *probed])

    def solve(self, near: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Solve for (parameters, Jacobian of the data residuals by the scaled parameters, data residuals).

        Args:
            near: Start of the search. By default several starts are tried and the best result is used.
        """
        ends = [
            least_squares(
                self.residuals,
                begin / self.scale,
                bounds=(np.zeros(len(NAMES)), self.high),
                x_scale=1.0,
                max_nfev=MOST_EVALUATIONS,
            )
            for begin in (self._starts() if near is None else [near])
        ]
        best = min(ends, key=lambda end: float(end.cost))
        rows = len(best.fun) - len(NAMES)
        return best.x * self.scale, np.asarray(best.jac)[:rows], best.fun[:rows]

    def _starts(self) -> list[Floats]:
        starts = []
        for begin, byte in ((1.0, 1e-9), (0.3, 1e-9), (1.0, 1e-8), (0.3, 1e-10)):
            first = self._first.copy()
            first[INDEX["start"]], first[INDEX["byte_s"]] = begin, byte
            if self._evidence.manner.exchange == SERVER:
                first[INDEX["serving"]] = SERVING  # a search that starts on a bound hardly leaves it
            starts.append(first)
        return starts

    def _guess(self, step: float) -> Floats:
        """A start value from the phases of the smallest configuration."""
        smallest = min(self._evidence.trainings, key=lambda training: training.conditions.workers)
        phases = smallest.phases or {"forward": step / 3, "backward": step * 2 / 3}
        first = DEFAULT.copy()
        for name in ("forward", "backward"):
            first[INDEX[f"{name}_s"]] = 0.1 * phases.get(name, 0.0)
            first[INDEX[f"{name}_per_sample_s"]] = 0.9 * phases.get(name, 0.0) / smallest.conditions.batch
        first[INDEX["update_s"]], first[INDEX["overhead_s"]] = phases.get("update", 0.0), phases.get("overhead", 0.0)
        first[INDEX["input_s"]] = phases.get("data", 0.0)
        first[INDEX["alpha_s"]], first[INDEX["byte_s"]] = 1e-4, 1e-9
        bounded: Floats = np.minimum(first, HIGH)
        return bounded
