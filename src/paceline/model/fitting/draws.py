"""Draws of plausible parameters, from which intervals of parameters and predictions are computed. Pure."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from paceline.model.equations.arrays import Bools, Floats
from paceline.model.equations.parameters import HIGH, NAMES
from paceline.model.fitting.calibration import TOGETHER
from paceline.model.fitting.problem import Problem
from paceline.stats.estimate import MODELLED_LEVEL

DRAWS = 200
LEAST_ERROR = 1e-4
"""Smallest error of an observation; even one that is fitted exactly has noise."""
HALVINGS = 12
"""Number of times a contradicted draw is moved halfway back."""


def draws_of(problem: Problem, vector: Floats, jacobian: Floats, residuals: Floats, noise: float) -> Floats:
    """Draw parameter vectors that are plausible given the observations.

    Randomize, then optimize (Bardsley et al. 2014): perturb the observations by their errors and the priors by their
    uncertainty, then repeat the linearised fit within its bounds. Observations have two errors: one shared by a whole
    run, as large as the differences between runs, and one of their own, as large as the residuals of the fit.
    """
    freedom = max(1, len(residuals) - int(np.linalg.matrix_rank(jacobian)))
    own = max(float(np.sqrt((residuals**2).sum() / freedom)), LEAST_ERROR)
    generator = np.random.default_rng(0)
    # Student's t, because the size of the errors is estimated from few residuals.
    scale = np.sqrt(freedom / generator.chisquare(freedom, size=(DRAWS, 1)))
    shared = problem.common() * problem.noise_of_means(noise)
    moved = scale * (
        own * generator.normal(size=(DRAWS, len(residuals)))
        + generator.normal(size=(DRAWS, shared.shape[1])) @ shared.T
    )
    assumed = generator.normal(size=(DRAWS, len(NAMES)))
    scaled = vector / problem.scale
    orthogonal, triangle = np.linalg.qr(np.vstack([jacobian / own, np.diag(1 / problem.unsure)]))
    targets = np.hstack([moved / own, assumed]) @ orthogonal
    bounds = (np.minimum(-scaled, -1e-15), np.maximum(problem.high - scaled, 1e-15))
    moves = [lsq_linear(triangle, target, bounds=bounds, method="bvls").x for target in targets]
    assumed_only = np.linalg.norm(jacobian, axis=0) * problem.unsure < own
    draws: Floats = _not_contradicted(problem, scaled, np.array(moves), assumed_only, own) * problem.scale
    return draws


def together(vector: Floats, draws: Floats) -> tuple[Floats, Floats]:
    """Intervals that hold for all parameters at once in a fraction TOGETHER of all calibrations.

    Separate 90 % intervals would miss one parameter in ten, so few calibrations would have all parameters inside.
    Readers look at all parameters together.
    """
    tail = (1 - MODELLED_LEVEL) / 2 * 100
    low, high = np.percentile(draws, [tail, 100 - tail], axis=0)
    down, up = np.maximum(vector - low, 0.0), np.maximum(high - vector, 0.0)
    off = draws - vector
    width = np.where(off > 0, up, down)
    outside = np.divide(np.abs(off), width, out=np.zeros_like(off), where=width > 0).max(axis=1)
    wider = max(1.0, float(np.quantile(outside, TOGETHER)))
    return np.maximum(vector - wider * down, 0.0), np.minimum(vector + wider * up, HIGH)


def _not_contradicted(problem: Problem, scaled: Floats, moves: Floats, assumed: Bools, own: float) -> Floats:
    """Move the assumed parameters of each draw back until the observations no longer contradict them."""

    def misfit(draws: Floats) -> Floats:
        norms: Floats = np.linalg.norm(problem.of_data(draws * problem.scale), axis=1)
        return norms

    identified = np.where(assumed, 0.0, moves)
    limits = np.hypot(misfit(scaled + identified), own)
    draws: Floats = np.clip(scaled + identified, 0.0, problem.high)
    contradicted = np.arange(len(moves))
    for _ in range(HALVINGS):
        candidates = np.clip(scaled + moves[contradicted], 0.0, problem.high)
        fits = misfit(candidates) <= limits[contradicted]
        draws[contradicted[fits]] = candidates[fits]
        contradicted = contradicted[~fits]
        if not len(contradicted):
            break
        moves = np.where(assumed, moves / 2, moves)
    return draws


def anywhere(high: float) -> Floats:
    """Draws from 0 to `high`, denser at both ends, for a parameter of which only this range is known."""
    values: Floats = high * np.sin(np.pi / 2 * np.random.default_rng(1).uniform(size=DRAWS)) ** 2
    return values
