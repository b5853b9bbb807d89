"""The least-squares problem that fits the parameters to all observations of a family. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import least_squares

from paceline.model.equations.arrays import Floats
from paceline.model.equations.exchange import collective_s
from paceline.model.equations.parameters import DEFAULT, HIGH, INDEX, NAMES, UNKNOWNS
from paceline.model.equations.ready import Ready
from paceline.model.equations.stack import stack_of, stacks_of
from paceline.model.equations.stragglers import Straggling
from paceline.model.equations.terms import terms_of
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
DIFFERENCE = float(np.sqrt(np.finfo(float).eps))
"""Step of the finite differences, relative to a parameter or to 1 if that is larger."""
TINY = 1e-9
"""Smallest ratio of a modelled to a measured time; 0 has no logarithm."""
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
        self._steps_s = np.array([training.step_s for training in evidence.trainings])
        self._stacks = stacks_of([training.conditions for training in evidence.trainings])
        self._measured = np.array([_observed_s(training) for training in evidence.trainings])
        """What was observed of each training, as in `_observed_s`."""
        self._weights = np.array([[DERIVED_WEIGHT if training.derived else 1.0] for training in evidence.trainings])
        self._probes = [
            (collective, stack_of([collective.conditions.change(messages=tuple(collective.sizes))]))
            for collective in evidence.collectives
        ]
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

    def linearised(self, scaled: Floats) -> tuple[Floats, Floats]:
        """(residuals of data and prior, their Jacobian) at a scaled vector, by finite differences.

        One evaluation moves each parameter in turn, and costs hardly more than the residuals alone.
        """
        step = DIFFERENCE * np.maximum(1.0, np.abs(scaled))
        moved = scaled + np.where(scaled + step > self.high, -step, step)
        vectors = np.vstack([scaled, np.where(np.eye(len(NAMES)) > 0, moved, scaled)])
        here, *there = np.hstack([self.of_data(vectors * self.scale), PRIOR * (vectors - self._first / self.scale)])
        jacobian: Floats = (np.array(there) - here).T / (moved - scaled)
        return here, jacobian

    def of_data(self, vectors: Floats) -> Floats:
        """Residuals of all observations for each vector: one row per vector."""
        modelled = np.empty((*self._measured.shape, len(vectors)))
        for places, stack in self._stacks:
            terms = terms_of(vectors, stack, self._straggling)
            phases = terms.phases()
            modelled[places, 0] = terms.step_s
            for index, name in enumerate(PHASES, start=1):
                modelled[places, index] = phases[name]
            modelled[places, -1] = terms.exchange_s + terms.update_s
        steps_s = self._steps_s[:, None, None]
        rows = self._weights[..., None] * (modelled - self._measured[..., None]) / steps_s
        rows[:, 0] = _logs(modelled[:, 0] / steps_s[:, 0])
        of_collectives = [
            _logs(collective_s(vectors, stack, probe.operation)[0] / probe.seconds) / np.sqrt(len(probe.sizes))
            for probe, stack in self._probes
        ]
        return np.hstack([rows[~np.isnan(self._measured)].T, *of_collectives])

    def common(self) -> Floats:
        """Effect of a relative slowdown of whole runs on the residuals: one column per trial and per collective."""
        relative = self._weights * self._measured / self._steps_s[:, None]
        relative[:, 0] = 1.0
        of_trainings = [column[~np.isnan(column)] for column in relative]
        of_collectives = [np.full(len(probe.sizes), 1 / np.sqrt(len(probe.sizes))) for probe, _ in self._probes]
        matrix: Floats = block_diag(*(column[:, None] for column in (*of_trainings, *of_collectives)))
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
        search = _Search(self.linearised)
        ends = [
            least_squares(
                search.residuals,
                begin / self.scale,
                jac=search.jacobian,
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


def _observed_s(training: Training) -> list[float]:
    """Seconds of the step, of its phases and of what was handed over; NaN for what was not observed."""
    handed_over = np.nan if training.handed_over_s is None else training.handed_over_s
    return [training.step_s, *(training.phases.get(name, np.nan) for name in PHASES), handed_over]


def _logs(ratios: Floats) -> Floats:
    """Logarithms, which do not depend on the processor.

    The last digit of NumPy's depends on its vector instructions, and a fit to few runs amplifies such differences.
    """
    above_zero = np.maximum(ratios, TINY)
    return np.array(list(map(log, above_zero.ravel().tolist()))).reshape(ratios.shape)


class _Search:
    """Residuals and Jacobian from one evaluation: a search asks for the Jacobian where it asked for residuals."""

    def __init__(self, linearised: Callable[[Floats], tuple[Floats, Floats]]) -> None:
        self._linearised = linearised
        self._at: Floats | None = None

    def residuals(self, scaled: Floats) -> Floats:
        return self._evaluated(scaled)[0]

    def jacobian(self, scaled: Floats) -> Floats:
        return self._evaluated(scaled)[1]

    def _evaluated(self, scaled: Floats) -> tuple[Floats, Floats]:
        if self._at is None or not np.array_equal(self._at, scaled):
            self._at, self._values = scaled.copy(), self._linearised(scaled)
        return self._values
