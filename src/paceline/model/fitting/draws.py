"""Parameters as likely as the fitted ones: what intervals of parameters and predictions are made of. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from paceline.model.equations.parameters import HIGH, NAMES
from paceline.model.equations.step import Floats
from paceline.model.fitting.problem import Problem

LEVEL = 0.90
TOGETHER = 0.99
"""Of calibrations: so many have every parameter in its interval."""
DRAWS = 200
LEAST_ERROR = 1e-4
"""Of an observation: what is met exactly is still a measurement."""
HALVINGS = 12


def draws_of(problem: Problem, vector: Floats, jacobian: Floats, residuals: Floats, noise: float) -> Floats:
    """Parameters as likely as the fitted ones.

    Randomize, then optimize (Bardsley et al. 2014): observations are moved by as much as they may be off, assumptions
    by as much as they are unsure, and the linearised fit is made again within its bounds. Observations are off in two
    ways: each run as a whole, by what runs were seen to differ, and each one by what the fit leaves over.
    """
    freedom = max(1, len(residuals) - int(np.linalg.matrix_rank(jacobian)))
    own = max(float(np.sqrt((residuals**2).sum() / freedom)), LEAST_ERROR)
    generator = np.random.default_rng(0)
    # Student's t: how large the errors are is itself known from few of them only.
    scale = np.sqrt(freedom / generator.chisquare(freedom, size=(DRAWS, 1)))
    shared = problem.common() * problem.noise_of_means(noise)
    moved = scale * (
        own * generator.normal(size=(DRAWS, len(residuals)))
        + generator.normal(size=(DRAWS, shared.shape[1])) @ shared.T
    )
    assumed = generator.normal(size=(DRAWS, len(NAMES)))
    scaled = vector / problem.scale
    orthogonal, triangle = np.linalg.qr(np.vstack([jacobian / own, np.diag(1 / problem.unsure)]))
    wanted = np.hstack([moved / own, assumed]) @ orthogonal
    bounds = (np.minimum(-scaled, -1e-15), np.maximum(problem.high - scaled, 1e-15))
    moves = [lsq_linear(triangle, one, bounds=bounds, method="bvls").x for one in wanted]
    assumed_only = np.linalg.norm(jacobian, axis=0) * problem.unsure < own
    draws = [_not_contradicted(problem, scaled, move, assumed_only, own) for move in moves]
    found: Floats = np.array(draws) * problem.scale
    return found


def together(vector: Floats, draws: Floats) -> tuple[Floats, Floats]:
    """Intervals that hold all parameters at once in TOGETHER of all calibrations.

    At 90 % each, one in ten would be missed, so that hardly any calibration had all of them inside; and a reader who
    compares a parameter with what is known of a machine looks at all of them.
    """
    tail = (1 - LEVEL) / 2 * 100
    low, high = np.percentile(draws, [tail, 100 - tail], axis=0)
    down, up = np.maximum(vector - low, 0.0), np.maximum(high - vector, 0.0)
    off = draws - vector
    width = np.where(off > 0, up, down)
    outside = np.divide(np.abs(off), width, out=np.zeros_like(off), where=width > 0).max(axis=1)
    wider = max(1.0, float(np.quantile(outside, TOGETHER)))
    return np.maximum(vector - wider * down, 0.0), np.minimum(vector + wider * up, HIGH)


def _not_contradicted(
    problem: Problem, scaled: Floats, move: Floats, assumed: npt.NDArray[np.bool_], own: float
) -> Floats:
    """A draw whose assumed parameters the observations allow, kinks of the model included; else half as far off."""
    known = np.where(assumed, 0.0, move)
    without = np.linalg.norm(problem.of_data((scaled + known) * problem.scale))
    most = np.hypot(without, own)
    for _ in range(HALVINGS):
        found: Floats = np.clip(scaled + move, 0.0, problem.high)
        if np.linalg.norm(problem.of_data(found * problem.scale)) <= most:
            return found
        move = np.where(assumed, move / 2, move)
    return np.clip(scaled + known, 0.0, problem.high)


def anywhere(high: float) -> Floats:
    """Draws from 0 to `high`, denser at both ends: where only a range is known, an interval should hold all of it."""
    found: Floats = high * np.sin(np.pi / 2 * np.random.default_rng(1).uniform(size=DRAWS)) ** 2
    return found
