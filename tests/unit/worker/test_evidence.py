"""What a rank shows in a fairness proof."""

from __future__ import annotations

import numpy as np
import pytest

from paceline_worker import evidence


def test_a_tensor_is_told_by_its_norm_and_sketch_whatever_its_layout_in_memory():
    array = np.random.default_rng(0).normal(size=(4, 5, 6))
    same = np.asfortranarray(array)
    assert evidence.describe("conv.weight", array) == evidence.describe("conv.weight", same)
    assert evidence.describe("conv.weight", array)["norm"] == pytest.approx(np.linalg.norm(array), rel=1e-12)


def test_the_sketch_of_a_tensor_is_the_same_wherever_it_is_made():
    # Written down once: a rank under another Python and NumPy must find the same.
    told = evidence.describe("fc.bias", np.arange(6, dtype=np.float32))
    assert told == {"norm": pytest.approx(55**0.5), "sketch": [5.0, -13.0, -3.0, 15.0, -9.0, -9.0, 3.0, -3.0]}


def test_the_distance_of_two_tensors_is_the_root_mean_square_of_their_sketches_difference():
    rng = np.random.default_rng(1)
    ratios = []
    for number in range(200):
        a = rng.normal(size=500)
        b = a + 1e-3 * rng.normal(size=500)
        name = f"layer{number}.weight"
        one, other = (np.asarray(evidence.describe(name, x)["sketch"]) for x in (a, b))
        ratios.append(np.sqrt(np.mean((one - other) ** 2)) / np.linalg.norm(a - b))
    assert np.mean(np.square(ratios)) == pytest.approx(1.0, abs=0.1)
    assert min(ratios) > 0.3


def test_large_tensors_are_sketched_in_parts_without_gaps():
    array = np.zeros(evidence.CHUNK + 10, dtype=np.float32)
    array[-1] = 3.0
    told = evidence.describe("fc.weight", array)
    assert told["norm"] == 3.0
    assert [abs(value) for value in told["sketch"]] == [3.0] * evidence.SKETCH


@pytest.mark.parametrize(
    ("asked", "used"), [((1, 4), (1, 4)), ((30, 4), (10, 4)), ((0, 100), (0, 10)), ((500, 100), (10, 5))]
)
def test_what_begins_late_begins_within_a_proof(asked, used):
    assert evidence.soon_enough(20, *asked) == used


def test_a_proof_of_one_step_has_a_period_too():
    assert evidence.soon_enough(1, 5, 5) == (0, 1)
