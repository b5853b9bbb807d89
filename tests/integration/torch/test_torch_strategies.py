"""Two ranks under every strategy against the float64 reference: gradients, losses, weights, phases."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from paceline.frameworks.reference import REFERENCE
from paceline.frameworks.torch_refusals import POWERSGD_START
from paceline.workloads import load_workload
from paceline_worker import evidence
from torch_rig import PROBES, told_facts

WORLD, BATCH, STEPS = 2, 4, 12
ASKED = {
    "mlp": (
        {"hidden": [96, 64]},
        {
            "zero": {"strategy": "zero"},
            "fsdp": {"strategy": "fsdp", "accumulate": 2},
            # Which does not divide the batch: a proof's is not the measured one.
            "accumulate": {"accumulate": 3},
            "local": {"strategy": "post_local_sgd", "local_sgd_start": 2},
            "local late": {"strategy": "post_local_sgd", "local_sgd_start": 50, "local_sgd_period": 20},
            "fp16": {"hook": "fp16"},
            "powersgd": {"hook": "powersgd", "powersgd_rank": 2},
        },
    ),
    "resnet20": ({"image_size": 8}, {"zero": {"strategy": "zero"}, "fsdp": {"strategy": "fsdp"}}),
    "gpt": (
        {"vocabulary": 50, "sequence_length": 6, "hidden": 16, "layers": 3},
        {
            "fsdp": {"strategy": "fsdp", "reshard_after_forward": False},
            "tensor": {"strategy": "tensor"},
            "gpipe": {"strategy": "pipeline", "schedule": "gpipe", "microbatches": 2},
            "1f1b": {"strategy": "pipeline"},
        },
    ),
}
EXACT = [
    ("mlp", "zero"),
    ("mlp", "fsdp"),
    ("mlp", "accumulate"),
    ("resnet20", "zero"),
    ("resnet20", "fsdp"),
    ("gpt", "fsdp"),
    ("gpt", "tensor"),
    ("gpt", "gpipe"),
    ("gpt", "1f1b"),
]
SPLIT = [("gpt", "tensor"), ("gpt", "gpipe"), ("gpt", "1f1b")]
"""Ranks see all samples and share the model."""


@dataclass(frozen=True)
class Trained:
    """What two ranks and the reference found, for all variants on one model."""

    folder: Path
    facts: list[dict]
    shown: dict
    """The reference's evidence."""
    losses: np.ndarray
    """The reference's, one row a worker."""

    def arrays(self, variant: str, what: str) -> list[dict[str, np.ndarray]]:
        """Tensor → array, of each rank."""
        kept = [np.load(self.folder / f"{variant}.{rank}.npz") for rank in range(WORLD)]
        return [{n.split("/")[1]: one[n] for n in one.files if n.startswith(what + "/")} for one in kept]

    def distance(self, variant: str) -> float:
        """Of the gradient of step 0 from the reference's, relative, at the worst tensor of any rank."""
        worst = 0.0
        for arrays in self.arrays(variant, "gradients"):
            for name, array in arrays.items():
                wanted = self.shown["gradients"][name]
                apart = np.subtract(evidence.describe(name, array)["sketch"], wanted["sketch"])
                worst = max(worst, float(np.sqrt(np.mean(apart**2))) / wanted["norm"])
        return worst


@pytest.fixture(scope="module")
def trained_by_model(rig, tmp_path_factory):
    """Each model is trained when it is first asked for."""
    known: dict[str, Trained] = {}

    def get(model: str) -> Trained:
        if model not in known:
            known[model] = train(model, rig, tmp_path_factory)
        return known[model]

    return get


def train(model, rig, tmp_path_factory) -> Trained:
    options, variants = ASKED[model]
    common = {"batch": BATCH, "samples": 2 * WORLD * BATCH, "warmup_steps": 0, "steps": STEPS, "evidence": True}
    graph = load_workload(model, options)
    folder = tmp_path_factory.mktemp(model)
    rig.run(rig.job(graph, world=WORLD, **common) | {"variants": variants}, folder, (str(PROBES / "exchange.py"),))
    reference = rig.job(graph, **common) | {"devices": WORLD}
    reference["framework"] = {"name": "reference", "module": REFERENCE.module, "strategy": "single", "knobs": {}}
    (events,) = rig.run(reference, tmp_path_factory.mktemp("reference"))
    return Trained(
        folder=folder,
        facts=[json.loads((folder / f"facts.{rank}.json").read_text()) for rank in range(WORLD)],
        shown={event["what"]: event["tensors"] for event in events if event["event"] == "evidence"},
        losses=np.asarray(told_facts(events)["losses"]),
    )


@pytest.mark.parametrize(("model", "variant"), EXACT)
def test_gradient_of_an_exact_strategy_is_the_mean_over_workers(trained_by_model, model, variant):
    trained = trained_by_model(model)
    held = set().union(*trained.arrays(variant, "gradients"))

    assert held == set(trained.shown["gradients"])
    assert trained.distance(variant) < 1e-5


@pytest.mark.parametrize(("model", "variant"), EXACT)
def test_losses_of_an_exact_strategy_are_the_references(trained_by_model, model, variant):
    trained = trained_by_model(model)
    seen = np.asarray([facts[variant]["loss"] for facts in trained.facts])
    over = {facts[variant]["loss_over"] for facts in trained.facts}
    wanted = np.repeat(trained.losses.mean(axis=0, keepdims=True), WORLD, axis=0)

    assert over == ({"global"} if (model, variant) in SPLIT else {"worker"})
    np.testing.assert_allclose(seen, wanted if (model, variant) in SPLIT else trained.losses, rtol=1e-3)


@pytest.mark.parametrize(("model", "variant"), EXACT)
def test_ranks_of_an_exact_strategy_agree_on_every_tensor_they_share(trained_by_model, model, variant):
    first, second = trained_by_model(model).arrays(variant, "weights")

    assert first.keys() | second.keys() == trained_by_model(model).shown["weights"].keys()
    for name in first.keys() & second.keys():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
    # Stages of a pipeline share none.
    assert bool(first.keys() & second.keys()) == (variant not in ("gpipe", "1f1b"))


@pytest.mark.parametrize("model", ASKED)
def test_ranks_count_the_parameters_of_the_whole_model(trained_by_model, model):
    whole = load_workload(model, ASKED[model][0]).num_parameters
    for facts in trained_by_model(model).facts:
        assert {name: one["parameters"] for name, one in facts.items()} == dict.fromkeys(facts, whole)


def test_a_rank_holds_its_share(trained_by_model):
    whole = load_workload("gpt", ASKED["gpt"][0]).num_parameters
    facts = trained_by_model("gpt").facts

    assert sum(one["fsdp"]["parameters_held"] for one in facts) == whole
    assert sum(one["1f1b"]["parameters_held"] for one in facts) == whole
    assert all(whole / 2 < one["tensor"]["parameters_held"] < 0.7 * whole for one in facts)
    # The embedding, two of the three blocks, and the last one with the head.
    assert facts[0]["fsdp"]["shard_units"] == len(facts[0]["fsdp"]["unit_bytes"]) == 4
    assert sum(facts[0]["fsdp"]["unit_bytes"]) == 4 * whole
    zero = [one["zero"]["parameters_updated"] for one in trained_by_model("mlp").facts]
    assert sum(zero) == load_workload("mlp", ASKED["mlp"][0]).num_parameters
    assert min(zero) > 0


def test_a_pipeline_is_cut_between_blocks(trained_by_model):
    first, second = (facts["1f1b"]["stage_layers"] for facts in trained_by_model("gpt").facts)

    assert first[0] == "embedding"
    assert first[-1] == "block1_mlp_add"
    assert second[0] == "block2_attention_norm"
    assert second[-1] == "head"
    assert trained_by_model("gpt").facts[0]["1f1b"]["pipeline_micro_batches"] == 8
    graph = load_workload("gpt", ASKED["gpt"][0])
    (handed,) = (layer.shape for layer in graph.layers if layer.name == first[-1])
    assert trained_by_model("gpt").facts[0]["1f1b"]["hand_over_bytes_per_sample"] == 4 * math.prod(handed)


def test_phases_fill_the_step_and_say_where_communication_is(trained_by_model):
    for model in ASKED:
        for facts in trained_by_model(model).facts:
            for variant, one in facts.items():
                assert sum(one["phases"].values()) == pytest.approx(one["wall_s"]), variant
                if variant in ("fsdp", "tensor"):
                    assert "communication" not in one["phases"]
                    assert set(one["phases_mixed"]["phases"]) == {"forward", "backward", "communication"}
                else:
                    assert list(one["phases"]) == ["data", "forward", "backward", "communication", "update"]
                if variant in ("zero", "local", "local late"):
                    assert set(one["phases_mixed"]["phases"]) == {"update", "communication"}


def test_a_proof_cuts_its_small_batch_as_often_as_it_can(trained_by_model):
    assert trained_by_model("mlp").facts[0]["accumulate"]["micro_batches"] == 2


def test_a_proof_comes_to_the_local_steps_however_late_they_begin(trained_by_model):
    trained = trained_by_model("mlp")
    late = trained.facts[0]["local late"]

    assert (late["local_from_step"], late["weights_averaged_every"]) == (STEPS // 2, STEPS // 4)
    assert late["shortened_for_proof"] == "local_sgd_start 50, local_sgd_period 20"
    assert "shortened_for_proof" not in trained.facts[0]["local"]
    first, second = trained.arrays("local late", "weights")
    assert not np.array_equal(first["head.weight"], second["head.weight"])


def test_compressed_gradients_say_how_wrong_they_are_and_still_train(trained_by_model):
    trained = trained_by_model("mlp")
    fp16, powersgd = (trained.facts[0][name] for name in ("fp16", "powersgd"))

    assert 1e-5 < fp16["compression_error"] < 1e-2
    assert 1e-5 < trained.distance("fp16") < 1e-2
    assert fp16["compressed_from_step"] == 0
    assert powersgd["compressed_from_step"] == POWERSGD_START
    assert powersgd["compression_rate"] > 4
    assert powersgd["compression_error"] > 0.01
    for name in ("fp16", "powersgd", "local"):
        losses = np.mean([facts[name]["loss"] for facts in trained.facts], axis=0)
        assert losses[-2:].mean() < losses[:2].mean()


def test_local_steps_part_the_ranks_after_exact_ones(trained_by_model):
    trained = trained_by_model("mlp")
    first, second = trained.arrays("local", "weights")
    seen = np.asarray([facts["local"]["loss"] for facts in trained.facts])

    # Two steps with averaged gradients; what they lead to is the loss of the third.
    np.testing.assert_allclose(seen[:, :3], trained.losses[:, :3], rtol=1e-5)
    assert not np.allclose(seen[:, 6:], trained.losses[:, 6:], rtol=1e-5)
    assert not np.array_equal(first["head.weight"], second["head.weight"])


def test_pytorch_counts_flops_in_a_proof(trained_by_model):
    # Forward, and twice that backward but for the first layer, which has no input to give a gradient to.
    sizes = [784, 96, 64, 10]
    products = [2 * BATCH * a * b for a, b in pairwise(sizes)]

    assert trained_by_model("mlp").facts[0]["zero"]["framework_flops"] == 3 * sum(products) - products[0]


def test_a_whole_proof_run_of_a_pipeline_shows_each_stages_tensors(rig, tmp_path):
    graph = load_workload("transformer", {"vocabulary": 50, "sequence_length": 6, "hidden": 16})
    job = rig.job(
        graph,
        world=2,
        batch=2,
        samples=8,
        strategy="pipeline",
        input="pipeline",
        warmup_steps=0,
        steps=2,
        evidence=True,
    )
    first, second = (
        {event["what"]: set(event["tensors"]) for event in events if event["event"] == "evidence"}
        for events in rig.run(job, tmp_path)
    )
    tensors = {name for name, _ in graph.tensors()}

    for what in ("gradients", "weights"):
        assert first[what] | second[what] == tensors
        assert not first[what] & second[what]
