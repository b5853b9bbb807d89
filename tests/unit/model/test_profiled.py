"""A PyTorch profile as a run: phases by operators, each moment counted once."""

from __future__ import annotations

import json

import pytest

from paceline.errors import PacelineError
from paceline.model.foreign.profiled import profiled


def trace(*spans, rank=0):
    events = [
        {"ph": "X", "name": name, "pid": 0, "tid": 0, "ts": start, "dur": length} for name, start, length in spans
    ]
    return json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}})


STEPS = (
    ("ProfilerStep#3", 0, 100),
    ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 10),
    ("aten::conv2d", 12, 28),
    ("autograd::engine::evaluate_function: ConvolutionBackward0", 40, 30),
    ("gloo:all_reduce", 60, 25),
    ("Optimizer.step#SGD.step", 88, 10),
    ("ProfilerStep#4", 100, 50),
    ("aten::conv2d", 100, 50),
)


def seconds(table, name):
    return [pytest.approx(value * 1e6) for value in table[f"phase.{name}"].to_pylist()]


def test_phases_are_told_by_the_names_of_operators():
    samples = profiled(trace(*STEPS)).samples

    assert seconds(samples, "data") == [10, 0]
    assert seconds(samples, "forward") == [28, 50]
    assert seconds(samples, "backward") == [30, 0]
    assert seconds(samples, "communication") == [15, 0]
    assert seconds(samples, "update") == [10, 0]
    assert seconds(samples, "overhead") == [7, 0]


def test_phases_sum_up_to_the_step():
    samples = profiled(trace(*STEPS)).samples
    names = [name for name in samples.column_names if name.startswith("phase.")]

    for row in samples.to_pylist():
        assert sum(row[name] for name in names) == pytest.approx(row["wall_s"])


def test_rank_is_that_of_the_file():
    profile = profiled(trace(*STEPS, rank=3))

    assert profile.rank == 3
    assert set(profile.samples["rank"].to_pylist()) == {3}


def test_profile_without_steps_is_refused():
    with pytest.raises(PacelineError, match="no steps"):
        profiled(trace(("aten::conv2d", 0, 10)))
