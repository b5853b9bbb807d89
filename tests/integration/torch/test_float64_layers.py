"""Every layer kind and the loss, as the float64 reference builds them, against NumPy.

The reference shares its builder with the PyTorch adapter. What it says of a layer rests on these tests, not on it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from numpy_layers import MEANINGS, STEP, gradient, run, running_statistics
from odd_graphs import GRAPHS, RULE
from paceline.workloads import load_workload
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input
from paceline.workloads.kinds import KINDS

BATCH = 3
MODELS = {
    "mlp": {"dropout": 0.2},
    "lenet5": {},
    "resnet20": {"image_size": 8},
    "googlenet": {"image_size": 64, "num_classes": 5, "auxiliary_heads": False},
    "lstm": {"vocabulary": 11, "sequence_length": 5, "embedding": 6, "hidden": 7},
    "transformer": {"vocabulary": 11, "sequence_length": 5, "hidden": 12, "dropout": 0.1},
}
"""Whole models: here the slope of the loss along one direction stands for all gradients."""
FORWARD = {"rtol": 1e-10, "atol": 1e-12}
SLOPE = {"rtol": 1e-6, "atol": 1e-8}
"""A central difference is that close to a derivative."""


class Passed:
    """One batch that went through a graph in float64: what was given, and what the reference's builder made of it."""

    def __init__(self, graph: Graph, given: dict, answer: dict) -> None:
        self.graph, self.given, self.answer = graph, given, answer
        self.inputs, self.targets = given["input"], given["targets"]
        self.tensors = {name: array for name, array in given.items() if name not in ("input", "targets")}
        for layer in graph.layers:
            if layer.kind == "dropout":
                self.tensors[f"{layer.name}.kept"] = (self.activation(layer.name) != 0).astype(float)

    def activation(self, layer: str) -> np.ndarray:
        return self.inputs if layer == INPUT else self.answer[f"activation/{layer}"]

    def loss_at(self, name: str, array: np.ndarray) -> float:
        """NumPy's loss with one of its arrays replaced."""
        if name == INPUT:
            return run(self.graph, self.tensors, array, self.targets)[1]
        return run(self.graph, {**self.tensors, name: array}, self.inputs, self.targets)[1]

    @property
    def gradients(self) -> dict[str, np.ndarray]:
        """What the reference's builder differentiates to, also with respect to an input of real numbers."""
        prefix = "gradient/"
        return {name.removeprefix(prefix): array for name, array in self.answer.items() if name.startswith(prefix)}


def numbers_for(graph: Graph) -> dict[str, np.ndarray]:
    """Input, targets and all tensors; nothing is 0 or 1 as it would be at the start, where a wrong bias cannot show."""
    random = np.random.default_rng(7)
    shape = (BATCH, *graph.input.shape)
    tokens = graph.input.kind == "tokens"
    target_shape = shape if graph.input.target == "next-token" else shape[:1]
    given = {
        "input": random.integers(graph.input.vocabulary, size=shape) if tokens else random.normal(size=shape),
        "targets": random.integers(graph.input.classes, size=target_shape),
    }
    for name, tensor in graph.tensors():
        spread = 1 / np.sqrt(np.prod(tensor.shape[1:])) if len(tensor.shape) > 1 else 0.3
        centre = 1.0 if tensor.init["kind"] == "ones" else 0.0
        given[name] = centre + spread * np.clip(random.normal(size=tensor.shape), -2, 2)
    return given


def pass_through(rig, folder: Path, graphs: dict[str, Graph], given: dict[str, dict]) -> dict[str, Passed]:
    """All graphs in one process of the environment."""
    asked = {}
    for name, graph in graphs.items():
        np.savez(folder / f"{name}.given.npz", **given[name])
        places = {"given": str(folder / f"{name}.given.npz"), "answer": str(folder / f"{name}.answer.npz")}
        asked[name] = rig.files(graph, samples=BATCH) | places
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    rig.probe("float64", str(folder / "asked.json"))
    return {name: Passed(graphs[name], given[name], dict(np.load(asked[name]["answer"]))) for name in graphs}


@pytest.fixture(scope="module")
def passed(rig, tmp_path_factory) -> dict[str, Passed]:
    graphs = {**GRAPHS, **{name: load_workload(name, options) for name, options in MODELS.items()}}
    given = {name: numbers_for(graph) for name, graph in graphs.items()}
    return pass_through(rig, tmp_path_factory.mktemp("float64"), graphs, given)


def test_every_layer_kind_has_a_meaning_in_numpy_and_a_graph_that_holds_the_reference_to_it():
    assert MEANINGS.keys() == KINDS.keys()
    assert set().union(*(graph.layer_kinds for graph in GRAPHS.values())) == KINDS.keys() | {INPUT}


@pytest.mark.parametrize("name", [*GRAPHS, *MODELS])
def test_every_layer_and_the_loss_are_what_numpy_says(passed, name):
    seen = passed[name]
    values, loss = run(seen.graph, seen.tensors, seen.inputs, seen.targets)

    for layer in seen.graph.layers[1:]:
        assert seen.activation(layer.name).dtype == np.float64
        np.testing.assert_allclose(seen.activation(layer.name), values[layer.name], **FORWARD, err_msg=layer.name)
    np.testing.assert_allclose(seen.answer["loss"], loss, **FORWARD)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_gradient_is_the_slope_of_numpys_loss(passed, name):
    seen = passed[name]
    trainable = {tensor for tensor, declared in seen.graph.tensors() if declared.trainable}

    assert seen.gradients.keys() - {INPUT} == trainable
    for tensor, found in seen.gradients.items():
        slopes = gradient(lambda array, tensor=tensor: seen.loss_at(tensor, array), seen.given[tensor])
        np.testing.assert_allclose(found, slopes, **SLOPE, err_msg=tensor)


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_of_a_whole_model_is_the_slope_along_a_direction(passed, name):
    seen = passed[name]
    random = np.random.default_rng(1)
    along = {tensor: random.normal(size=found.shape) for tensor, found in seen.gradients.items() if tensor != INPUT}
    size = np.sqrt(sum(np.sum(part**2) for part in along.values()))

    def loss_at(distance: float) -> float:
        moved = {tensor: seen.tensors[tensor] + distance / size * part for tensor, part in along.items()}
        return run(seen.graph, {**seen.tensors, **moved}, seen.inputs, seen.targets)[1]

    expected = sum(np.sum(seen.gradients[tensor] * part) for tensor, part in along.items()) / size
    np.testing.assert_allclose((loss_at(STEP) - loss_at(-STEP)) / (2 * STEP), expected, **SLOPE)


@pytest.mark.parametrize("name", [*GRAPHS, *MODELS])
def test_batch_norm_keeps_the_mean_and_the_unbiased_variance(passed, name):
    seen = passed[name]
    kept = {
        tensor.removeprefix("after/"): array for tensor, array in seen.answer.items() if tensor.startswith("after/")
    }

    assert kept.keys() == {tensor for tensor, declared in seen.graph.tensors() if not declared.trainable}
    for layer in seen.graph.layers:
        if layer.kind == "batch_norm":
            before = {tensor: seen.given[f"{layer.name}.{tensor}"] for tensor in ("running_mean", "running_var")}
            expected = running_statistics(seen.activation(layer.inputs[0]), before, layer.attributes["momentum"])
            for tensor, array in expected.items():
                np.testing.assert_allclose(kept[f"{layer.name}.{tensor}"], array, **FORWARD)


def test_the_gradient_of_relu_at_zero_is_zero(rig, tmp_path):
    net = GraphBuilder("kink", Input(kind="vector", shape=(4,), classes=2))
    net.loss(net.linear("head", net.relu("relu", INPUT), features=2))
    graph = net.build(RULE)
    given = numbers_for(graph) | {"input": np.tile([0.0, -0.0, 1.0, -1.0], (BATCH, 1))}

    slopes = pass_through(rig, tmp_path, {"kink": graph}, {"kink": given})["kink"].gradients[INPUT]

    assert (slopes != 0).tolist() == [[False, False, True, False]] * BATCH
