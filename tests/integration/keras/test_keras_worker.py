"""A rank of Keras as it runs: what differs from the backend's own adapter. The rest is the contract's."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.workloads import load_workload
from torch_rig import only

BACKENDS = ("jax", "torch", "tensorflow")


def facts_of(events):
    return {name: value for event in events for name, value in event.get("facts", {}).items()}


@pytest.mark.parametrize("backend", BACKENDS)
def test_bf16_trains_and_says_on_which_backend(rig_of, tmp_path, backend):
    rig = rig_of(backend)
    options = {} if backend == "torch" else {"derive_phases": False}
    (events,) = rig.run(rig.job(load_workload("lenet5"), precision="bf16", batch=4, **options), tmp_path)
    losses = [loss for event in events if event["event"] == "steps" for loss in event["loss"]]

    assert np.isfinite(losses).all()
    assert len(losses) == 5
    assert facts_of(events)["precision"] == "bf16"
    assert facts_of(events)["backend_version"].startswith(backend)
    assert only(events, "ready")["framework_version"].startswith("3.")


def test_xla_on_tensorflow_trains_and_derives_phases_by_differences(rig_of, tmp_path):
    rig = rig_of("tensorflow")
    (events,) = rig.run(rig.job(load_workload("mlp", {"hidden": [32]}), jit_compile=True, batch=4), tmp_path)
    derived = facts_of(events)["phases_derived"]

    assert facts_of(events)["compiled"] == "tf.function with XLA"
    assert derived["by"] == "differences"
    assert list(derived["seconds"]) == ["forward", "backward", "update"]
    assert sum(derived["seconds"].values()) == pytest.approx(derived["step_s"])


def test_ranks_of_jax_derive_the_exchange_from_programs_of_their_own(rig_of, tmp_path):
    rig = rig_of("jax")
    first, second = rig.run(rig.job(load_workload("mlp", {"hidden": [32]}), world=2, batch=4), tmp_path)

    assert facts_of(first)["weights_sha256"] == facts_of(second)["weights_sha256"]
    assert facts_of(first)["loss_over"] == "global"
    derived = facts_of(first)["phases_derived"]
    assert list(derived["seconds"]) == ["forward", "backward", "update", "communication"]
