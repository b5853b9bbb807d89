"""The least-squares problem: its derivatives, and how often it is evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import HIGH, NAMES, as_vector
from paceline.model.equations.stragglers import ALIKE
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.fit import family_of
from paceline.model.fitting.observe import ObservedCollective, Training
from paceline.model.fitting.problem import Evidence, Problem
from records import make_trial

TRUTH = as_vector(
    {
        "forward_per_sample_s": 1e-3,
        "backward_per_sample_s": 2e-3,
        "update_s": 3e-3,
        "overhead_s": 1e-3,
        "alpha_s": 2e-4,
        "byte_s": 2e-9,
        "wire": 1.06,
        "start": 0.4,
        "contention": 0.3,
    }
)


def training(workers: int, batch: float, *, timed: bool = True, handed_over_s: float | None = None) -> Training:
    asked = Conditions(workers=workers, hosts=workers, batch=batch, messages=(2.6e6,) if workers > 1 else ())
    terms = step_terms(TRUTH, asked)
    return Training(
        trial=make_trial(workers=workers, hosts=workers),
        conditions=asked,
        steps_s=(terms.step_s,) * 2,
        phases=terms.phases() if timed else {},
        derived=not timed,
        handed_over_s=handed_over_s,
        straggling=None,
        peak_rss_bytes=None,
    )


@pytest.fixture
def problem() -> Problem:
    trainings = (training(1, 8.0), training(2, 8.0, timed=False), training(2, 16.0, handed_over_s=0.01))
    probe = ObservedCollective(
        trial=trainings[1].trial,
        conditions=trainings[1].conditions,
        operation="all_reduce",
        sizes=np.array([1e3, 1e6]),
        seconds=np.array([1e-3, 5e-3]),
    )
    family = family_of(trainings[0].trial, "here")
    return Problem(Evidence(family=family, trainings=trainings, collectives=(probe,)), ALIKE)


def test_there_is_a_residual_for_each_step_phase_handing_over_and_message_size(problem):
    (residuals,) = problem.of_data(TRUTH[None, :])

    assert len(residuals) == (1 + 6) + 1 + (1 + 6 + 1) + 2
    assert residuals[[0, 1, 7, 8]] == pytest.approx(np.zeros(4), abs=1e-12)
    assert np.count_nonzero(np.abs(residuals) > 1e-12) == 3


def test_jacobian_is_that_of_moving_one_parameter_at_a_time(problem):
    scaled = np.minimum(TRUTH, HIGH) / problem.scale
    scaled[NAMES.index("start")] = problem.high[NAMES.index("start")]

    residuals, jacobian = problem.linearised(scaled)

    for index in range(len(NAMES)):
        moved = scaled.copy()
        moved[index] *= 1 - 1e-6 if scaled[index] else 1
        moved[index] += 0 if scaled[index] else 1e-6
        slope = (problem.linearised(moved)[0] - residuals) / (moved[index] - scaled[index])
        assert jacobian[:, index] == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_finite_differences_stay_within_the_bounds(problem):
    evaluated: list[np.ndarray] = []
    of_data = problem.of_data
    problem.of_data = lambda vectors: evaluated.append(vectors) or of_data(vectors)
    problem.linearised(problem.high.clip(max=1.0))

    assert all((vectors / problem.scale <= problem.high).all() for vectors in evaluated)
    assert all((vectors >= 0).all() for vectors in evaluated)


def test_search_evaluates_no_point_twice(problem):
    points: list[bytes] = []
    linearised = problem.linearised
    problem.linearised = lambda scaled: points.append(scaled.tobytes()) or linearised(scaled)

    problem.solve(TRUTH)

    assert len(points) > 1
    assert len(set(points)) == len(points)
