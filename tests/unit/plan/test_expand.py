from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import SpecError
from paceline.frameworks import load_framework
from paceline.plan import Trial, expand
from paceline.plan.capabilities import Capabilities, Strategy
from paceline.plan.expand import require_cores
from paceline.spec import load_study, read_study
from plans import catalog, study


def trials(*args: Any, **kwargs: Any) -> list[Trial]:
    return [e.trial for e in expand(study(*args, **kwargs), catalog())]


def test_axes_multiply() -> None:
    found = trials({"workers_per_host": [1, 2]}, {"compile": [False, True]}, model=["mlp", "lenet5"])

    assert len(found) == len({trial.id for trial in found}) == 8


def test_trial_holds_every_knob_with_its_value() -> None:
    (trial,) = trials(knobs={"bucket_bytes": "5MB"})

    assert trial.framework.knobs == {"compile": False, "bucket_bytes": 5e6, "precision": "fp32"}
    assert trial.framework.strategy == "ddp"


def test_strong_scaling_shares_the_global_batch() -> None:
    found = trials({"workers_per_host": [1, 2]}, batch_global=64)

    assert [(t.workload.batch_per_worker, t.batch_global) for t in found] == [(64, 64), (32, 64)]


def test_unequal_shares_are_skipped_with_the_reason() -> None:
    expanded = expand(study({"workers_per_host": [1, 2]}, batch_global=7), catalog())

    assert [e.refusal is None for e in expanded] == [True, False]
    assert "cannot be divided equally among 2 workers" in (expanded[1].refusal or "")


def test_more_cores_than_there_are_is_an_error_that_says_what_to_write() -> None:
    wanted = study({"workers_per_host": 2, "threads_per_worker": 2})
    (expanded,) = expand(wanted, catalog())
    with pytest.raises(SpecError, match="want 4 cores per host, and there are 2") as caught:
        require_cores(wanted, [expanded])

    # To read what another machine recorded, it is a reason like any other.
    assert "want 4 cores per host" in (expanded.refusal or "")
    assert "oversubscribe = true" in (caught.value.hint or "")


def test_oversubscription_on_purpose_is_allowed() -> None:
    assert trials({"workers_per_host": 4, "oversubscribe": True})[0].workers == 4


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        ({"hosts": 2}, "site local has 1 host(s)"),
        ({"network": "1GbE"}, "cannot set a network"),
        ({"device": "cuda"}, "0 cuda device(s)"),
    ],
)
def test_what_the_site_cannot_do_is_skipped_with_the_reason(cluster: dict[str, Any], reason: str) -> None:
    (expanded,) = expand(study(cluster), catalog())

    assert reason in (expanded.refusal or "")


def test_strategy_for_one_worker_is_refused_for_two() -> None:
    wanted = study({"workers_per_host": 2})
    wanted.axes["framework.strategy"] = ("single",)
    (expanded,) = expand(wanted, catalog())

    assert expanded.refusal == "strategy single takes at most 1 worker(s)"


def test_layers_that_a_framework_lacks_are_named() -> None:
    lacking = Capabilities(
        strategies={"ddp": Strategy()}, data_parallel="ddp", layer_kinds=frozenset({"input", "linear"})
    )
    (expanded,) = expand(study(model="lenet5"), catalog(capabilities=lacking))

    assert "no layers of kind" in (expanded.refusal or "")
    assert "conv2d" in (expanded.refusal or "")


def test_unavailable_framework_is_skipped_with_its_reason() -> None:
    (expanded,) = expand(study(), catalog(torch="no Python 3.11"))

    assert expanded.refusal == "no Python 3.11"


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"compil": True}, "unknown knob 'compil'"),
        ({"compile": "yes"}, "framework.torch.compile: 'yes' should be true or false"),
        ({"precision": "fp8"}, "should be one of fp32, bf16"),
        ({"bucket_bytes": "5ms"}, "has the unit 'ms'"),
        ({"bucket_bytes": "0MB"}, "should be at least 1"),
    ],
)
def test_wrong_knob_is_named(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("(", r"\(")):
        trials(knobs=knobs)


def test_unknown_model_names_the_nearest() -> None:
    with pytest.raises(SpecError) as caught:
        trials(model="resnet21")

    assert "resnet2" in (caught.value.hint or "") + caught.value.message


def test_table_of_a_framework_outside_the_study_is_refused() -> None:
    wanted = read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_per_worker": 8},
            "framework": {"name": "torch", "jax": {"x": 1}},
        }
    )
    with pytest.raises(SpecError, match=r"framework\.jax: not part of this study"):
        expand(wanted, catalog())


def test_limits_are_no_part_of_the_identity() -> None:
    (a,) = trials()
    wanted = study()
    wanted.axes["measure.time_limit"] = (1.0,)
    (b,) = (e.trial for e in expand(wanted, catalog()))

    assert a.id == b.id


def test_changed_lock_is_another_trial() -> None:
    (a,) = trials()
    other = catalog()
    other.environments["torch"] = ("torch-cpu", "def")  # type: ignore[index]
    (b,) = (e.trial for e in expand(study(), other))

    assert a.id != b.id


@given(
    workers=st.integers(1, 2),
    batch=st.integers(1, 512),
    compiled=st.booleans(),
    bucket=st.none() | st.floats(1, 1e9),
    steps=st.integers(1, 10**6),
    model=st.sampled_from(["mlp", "lenet5"]),
)
def test_trial_survives_json(
    workers: int, batch: int, compiled: bool, bucket: float | None, steps: int, model: str
) -> None:
    wanted = study({"workers_per_host": workers}, {"compile": compiled}, model=model)
    wanted.axes["workload.batch_per_worker"] = (batch,)
    wanted.axes["measure.steps"] = (steps,)
    if bucket is not None:
        wanted.knobs["torch"]["bucket_bytes"] = (bucket,)
    (trial,) = (e.trial for e in expand(wanted, catalog()))

    again = Trial.from_json(trial.to_json())

    assert again == trial
    assert again.id == trial.id


def test_a_model_may_have_a_batch_and_steps_of_its_own():
    asked = study(
        model=["mlp", "lenet5"], batch_per_worker=32, lenet5={"batch_per_worker": [4, 8], "steps": 10, "num_classes": 5}
    )
    trials = [one.trial for one in expand(asked, catalog())]

    seen = {(t.workload.model, t.workload.batch_per_worker, t.measure.steps) for t in trials}
    assert {one[:2] for one in seen} == {("mlp", 32), ("lenet5", 4), ("lenet5", 8)}
    assert {one[2] for one in seen if one[0] == "lenet5"} == {10}
    assert {t.workload.options.get("num_classes") for t in trials} == {None, 5}


def test_the_scaling_study_fits_two_cores_and_tells_the_model_what_it_needs() -> None:
    shipped = load_study(Path(__file__).parents[3] / "studies" / "scaling.toml")
    expanded = expand(shipped, catalog(cores=2, capabilities=load_framework("torch").capabilities))

    assert [item.refusal for item in expanded] == [None] * 4
    assert {(item.trial.workload.batch_per_worker, item.trial.workers) for item in expanded} == {
        (8, 1),
        (8, 2),
        (16, 1),
        (16, 2),
    }


def test_more_workers_than_a_host_can_hold_are_refused_however_few_cores_they_need() -> None:
    asked = study({"workers_per_host": [1, 10**6], "oversubscribe": True})
    one, million = expand(asked, catalog())

    assert one.refusal is None
    assert "holds at most 4096 workers, the trial wants 1000000" in (million.refusal or "")
