"""The fit as a problem of least squares: what all observations of a family say about the parameters. Pure."""

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
"""Weight of what is assumed against what was measured."""
DERIVED_WEIGHT = 0.3
"""Of phases that are differences of separate programs: they are noisier than the step itself."""
UNSURE = 3.0
"""Parameters that nothing speaks about may be off by so many times what is usual of them."""
SERVING = 1e-8
"""Seconds of a byte at which searches begin: sockets, a sum and an update, on one core."""
MOST_EVALUATIONS = 200
"""Of a search: one that has not ended by then creeps along a valley in which nothing changes any more."""
PHASES = ("data", "forward", "backward", "communication", "update", "overhead")


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """All that is known of one family."""

    family: ModelFamily
    trainings: tuple[Training, ...]
    collectives: tuple[ObservedCollective, ...] = ()
    """Of the same library on the same site."""
    ready: Ready | None = None
    manner: Manner = field(default_factory=Manner)


class Problem:
    """Residuals of a family as a function of the parameters."""

    def __init__(self, evidence: Evidence, straggling: Straggling) -> None:
        self._evidence = evidence
        self._straggling = straggling
        self._steps_s = [one.step_s for one in evidence.trainings]
        """Of each training: asked for in every evaluation."""
        step = float(np.median(self._steps_s))
        batch = float(np.median([one.conditions.batch for one in evidence.trainings]))
        usual = {"s": step, "s/B": 1e-9, "1": 1.0}
        self.scale = np.array(
            [
                step / batch if name.endswith("_per_sample_s") else 1e-4 if name == "alpha_s" else usual[unknown.unit]
                for name, unknown in zip(NAMES, UNKNOWNS, strict=True)
            ]
        )
        self.high = HIGH / self.scale + 1e-12
        """Bounds of the scaled parameters."""
        self.unsure = np.array(
            [
                UNSURE if unknown.unsure is None else unknown.unsure / scale
                for unknown, scale in zip(UNKNOWNS, self.scale, strict=True)
            ]
        )
        """How far each may be from what is assumed, scaled."""
        self._first = self._guess(step)

    def residuals(self, scaled: Floats) -> Floats:
        return np.concatenate([self.of_data(scaled * self.scale), PRIOR * (scaled - self._first / self.scale)])

    def of_data(self, vector: Floats) -> Floats:
        rows: list[float] = []
        values = vector.tolist()
        for one, step_s in zip(self._evidence.trainings, self._steps_s, strict=True):
            terms = step_terms(values, one.conditions, self._straggling)
            rows.append(log(max(terms.step_s, 1e-12) / step_s))
            weight = DERIVED_WEIGHT if one.derived else 1.0
            found = terms.phases()
            rows += [weight * (found[name] - one.phases[name]) / step_s for name in PHASES if name in one.phases]
            if one.handed_over_s is not None:
                rows.append(weight * (terms.exchange_s + terms.update_s - one.handed_over_s) / step_s)
        for two in self._evidence.collectives:
            taken = np.maximum(collective_s(vector, two.conditions, two.sizes, two.operation), 1e-12)
            rows += (np.log(taken / two.seconds) / np.sqrt(len(two.sizes))).tolist()
        return np.array(rows)

    def common(self) -> Floats:
        """How a run that takes longer by a part moves the residuals: a column a trial, one more a collective."""
        columns: list[list[float]] = []
        for one in self._evidence.trainings:
            weight = DERIVED_WEIGHT if one.derived else 1.0
            phases = [weight * one.phases[name] / one.step_s for name in PHASES if name in one.phases]
            if one.handed_over_s is not None:
                phases.append(weight * one.handed_over_s / one.step_s)
            columns.append([1.0, *phases])
        columns += [[1 / np.sqrt(len(two.sizes))] * len(two.sizes) for two in self._evidence.collectives]
        found = np.zeros((sum(len(column) for column in columns), len(columns)))
        row = 0
        for index, column in enumerate(columns):
            found[row : row + len(column), index] = column
            row += len(column)
        return found

    def noise_of_means(self, noise: float) -> Floats:
        """Of each column of `common`, if runs differ by so much."""
        trained = [noise / np.sqrt(len(one.steps_s)) for one in self._evidence.trainings]
        probed = [max(noise, two.noise) / np.sqrt(two.runs) for two in self._evidence.collectives]
        return np.array([*trained, *probed])

    def solve(self, near: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """(parameters, derivatives of the data's residuals by the scaled parameters, these residuals).

        Args:
            near: where to begin; by default in several places, and the best end counts.
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
                first[INDEX["serving"]] = SERVING  # a search that begins on a bound hardly leaves it
            starts.append(first)
        return starts

    def _guess(self, step: float) -> Floats:
        """A start from the phases of the smallest configuration, where they are known."""
        one = min(self._evidence.trainings, key=lambda training: training.conditions.workers)
        phases = one.phases or {"forward": step / 3, "backward": step * 2 / 3}
        first = DEFAULT.copy()
        for name in ("forward", "backward"):
            first[INDEX[f"{name}_s"]] = 0.1 * phases.get(name, 0.0)
            first[INDEX[f"{name}_per_sample_s"]] = 0.9 * phases.get(name, 0.0) / one.conditions.batch
        first[INDEX["update_s"]], first[INDEX["overhead_s"]] = phases.get("update", 0.0), phases.get("overhead", 0.0)
        first[INDEX["input_s"]] = phases.get("data", 0.0)
        first[INDEX["alpha_s"]], first[INDEX["byte_s"]] = 1e-4, 1e-9
        bounded: Floats = np.minimum(first, HIGH)
        return bounded
