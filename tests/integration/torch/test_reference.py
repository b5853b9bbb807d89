"""The float64 reference against NumPy written for this test alone: what judges all frameworks is judged here."""

from __future__ import annotations

import numpy as np
import pytest

from layer_meaning import image_graph
from paceline.frameworks.reference import REFERENCE
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Input, Sgd
from paceline_worker import evidence
from paceline_worker.batches import batch_indices
from paceline_worker.frameworks.samples import Samples
from paceline_worker.graph.weights import read_weights
from torch_rig import only, told_facts

BATCH, STEPS, SAMPLES = 4, 3, 16
RULE = Sgd(learning_rate=0.1, momentum=0.9, weight_decay=0.01)


def perceptron():
    net = GraphBuilder("small", Input(kind="vector", shape=(6,), classes=3))
    x = net.relu("relu", net.linear("inner", INPUT, features=5))
    net.loss(net.linear("head", x, features=3))
    return net.build(RULE)


def loss_and_gradient(weights, x, labels):
    """Of the mean cross-entropy, by hand."""
    inner = x @ weights["inner.weight"].T + weights["inner.bias"]
    active = np.maximum(inner, 0)
    logits = active @ weights["head.weight"].T + weights["head.bias"]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    back = shares.copy()
    back[rows, labels] -= 1
    back /= len(labels)
    inner_back = (back @ weights["head.weight"]) * (inner > 0)
    return -np.log(shares[rows, labels]).mean(), {
        "inner.weight": inner_back.T @ x,
        "inner.bias": inner_back.sum(axis=0),
        "head.weight": back.T @ active,
        "head.bias": back.sum(axis=0),
    }


def by_hand(job, workers):
    """Losses by worker and step, the gradient of step 0, the weights after the last step."""
    samples = Samples(job["input"]["index"])
    weights = {name: array.astype(np.float64) for name, array in read_weights(job["weights"])}
    velocity = {name: np.zeros_like(array) for name, array in weights.items()}
    losses, first = [[] for _ in range(workers)], None
    for step in range(STEPS):
        mean = {name: np.zeros_like(array) for name, array in weights.items()}
        for worker in range(workers):
            places = batch_indices(step, worker, workers, BATCH, samples.count)
            x = (samples.inputs[places].astype(np.float64) - samples.normalisation["subtract"]) / (
                samples.normalisation["divide"]
            )
            loss, gradient = loss_and_gradient(weights, x, samples.targets[places])
            losses[worker].append(loss)
            for name in mean:
                mean[name] += gradient[name] / workers
        first = mean if first is None else first
        for name, before in weights.items():
            velocity[name] = RULE.momentum * velocity[name] + mean[name] + RULE.weight_decay * before
            weights[name] = before - RULE.learning_rate * velocity[name]
    return losses, first, weights


@pytest.mark.parametrize("workers", [1, 2])
def test_reference_is_what_the_graph_says_to_the_tenth_digit(rig, tmp_path, workers):
    job = rig.job(
        perceptron(), batch=BATCH, samples=SAMPLES, strategy="single", warmup_steps=0, steps=STEPS, evidence=True
    )
    job["framework"] |= {"name": "reference", "module": REFERENCE.module, "knobs": {}}
    job["devices"] = workers
    (events,) = rig.run(job, tmp_path)
    losses, gradient, weights = by_hand(job, workers)
    shown = {event["what"]: event["tensors"] for event in events if event["event"] == "evidence"}
    (block,) = [event for event in events if event["event"] == "steps"]

    np.testing.assert_allclose(told_facts(events)["losses"], losses, rtol=1e-10)
    np.testing.assert_allclose(block["loss"], np.mean(losses, axis=0), rtol=1e-10)
    for what, tensors in (("gradients", gradient), ("weights", weights)):
        expected = {name: evidence.describe(name, array) for name, array in tensors.items()}
        assert shown[what].keys() == expected.keys()
        for name, one in expected.items():
            np.testing.assert_allclose(shown[what][name]["norm"], one["norm"], rtol=1e-10)
            np.testing.assert_allclose(shown[what][name]["sketch"], one["sketch"], rtol=1e-10, atol=1e-12)


def test_reference_of_a_model_with_batch_norm_tells_its_statistics(rig, tmp_path):
    job = rig.job(image_graph(), batch=BATCH, samples=SAMPLES, warmup_steps=0, steps=2, evidence=True)
    job["framework"] |= {"name": "reference", "module": REFERENCE.module, "knobs": {}}
    (events,) = rig.run(job, tmp_path)
    shown = {event["what"]: set(event["tensors"]) for event in events if event["event"] == "evidence"}
    trainable = {name for name, tensor in image_graph().tensors() if tensor.trainable}

    assert shown["gradients"] == shown["weights"] == trainable
    assert shown["statistics"] == {name for name, _ in image_graph().tensors()} - trainable
    assert only(events, "ready")["facts"]["precision"] == "fp64"


def to_bf16(x):
    """The nearest number with 8 bits, ties to even, as a float64."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)


def coarse_gradient(weights, x, labels):
    """As `loss_and_gradient`, but all that passes between layers is rounded to bf16, both ways."""
    x, weights = to_bf16(x), {name: to_bf16(array) for name, array in weights.items()}
    inner = to_bf16(x @ weights["inner.weight"].T + weights["inner.bias"])
    active = np.maximum(inner, 0)
    logits = to_bf16(active @ weights["head.weight"].T + weights["head.bias"])
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    back = shares / shares.sum(axis=1, keepdims=True)
    back[np.arange(len(labels)), labels] -= 1
    back = to_bf16(back / len(labels))
    inner_back = to_bf16(back @ weights["head.weight"]) * (inner > 0)
    return {
        "inner.weight": inner_back.T @ x,
        "inner.bias": inner_back.sum(axis=0),
        "head.weight": back.T @ active,
        "head.bias": back.sum(axis=0),
    }


def test_reference_tells_what_bf16_does_to_the_first_gradient(rig, tmp_path):
    job = rig.job(perceptron(), batch=BATCH, samples=SAMPLES, warmup_steps=0, steps=1, evidence=True)
    job["framework"] |= {"name": "reference", "module": REFERENCE.module, "knobs": {}}
    (events,) = rig.run(job, tmp_path)
    samples = Samples(job["input"]["index"])
    places = batch_indices(0, 0, 1, BATCH, samples.count)
    rule = samples.normalisation
    x = (samples.inputs[places].astype(np.float64) - rule["subtract"]) / rule["divide"]
    weights = {name: array.astype(np.float64) for name, array in read_weights(job["weights"])}
    expected = coarse_gradient(weights, x, samples.targets[places])
    told = told_facts(events)["coarse_gradients"]

    assert told.keys() == {"bf16"}
    assert told["bf16"].keys() == expected.keys()
    for name, array in expected.items():
        described = evidence.describe(name, array)
        np.testing.assert_allclose(told["bf16"][name]["norm"], described["norm"], rtol=1e-10)
        np.testing.assert_allclose(told["bf16"][name]["sketch"], described["sketch"], rtol=1e-10, atol=1e-12)
