"""What the ranks of a run read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.run.inputs import prepare_inputs
from paceline.workloads import load_workload
from records import make_trial


@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_ranks_of_a_proof_know_of_the_dropout_that_was_taken_out(tmp_path, evidence, rate):
    trial = make_trial(model="mlp")
    trial = replace(trial, measure=replace(trial.measure, evidence=evidence))
    graph = load_workload("mlp", {"dropout": rate})

    inputs = prepare_inputs(graph, trial, tmp_path, tmp_path, needs_weights=False)

    assert inputs.drops_out == (rate > 0)
    kinds = {layer["kind"] for layer in inputs.graph["layers"]}
    assert ("dropout" in kinds) == (rate > 0 and not evidence)
