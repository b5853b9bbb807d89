"""What ranks tell of the way in which they share a step reaches the model."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.model.equations.ready import Ready
from paceline.model.fitting.fit import fit
from paceline.model.fitting.observe import Training, trainings
from paceline.model.forecast.predict import conditions_for, predict
from paceline.plan.vocabulary import ASYNCHRONOUS, PARTITIONED, PIPELINED, REPLICATED, SHARDED
from paceline.recorded import evidence_of_records
from paceline.recorded import manner as manner_of
from records import fused_record, make_record, uneven_input


def observed(framework: str, strategy: str, *, workers: int = 2, batch: int = 8, **changes: Any) -> Training:
    record = make_record(framework=framework, strategy=strategy, workers=workers, batch=batch, **changes)
    (training,) = trainings([record], manner_of, lambda _trial: None)
    return training


@pytest.mark.parametrize(
    ("framework", "strategy", "sharing"),
    [
        ("torch", "ddp", REPLICATED),
        ("torch", "zero", PARTITIONED),
        ("torch", "fsdp", SHARDED),
        ("torch", "pipeline", PIPELINED),
        ("mxnet", "dist_sync", REPLICATED),
        ("mxnet", "dist_async", ASYNCHRONOUS),
        ("tensorflow", "parameter_server", ASYNCHRONOUS),
        ("torch", "tensor", REPLICATED),
    ],
)
def test_a_strategy_is_modelled_as_what_it_does(framework: str, strategy: str, sharing: str) -> None:
    assert observed(framework, strategy).conditions.sharing == sharing


def test_what_is_not_modelled_says_so() -> None:
    record = make_record(framework="torch", strategy="tensor", workers=2)

    assert "strategy tensor" in manner_of(record.trial).unknown
    assert not manner_of(make_record(framework="torch", strategy="fsdp", workers=2).trial).unknown


def test_local_steps_are_averaged_as_often_as_the_knob_says() -> None:
    assert observed("torch", "post_local_sgd", knobs={"local_sgd_period": 8}).conditions.every == 8


def test_micro_batches_are_passes_over_a_part_of_the_batch() -> None:
    summed = observed("torch", "ddp", facts={"micro_batches": 4}).conditions
    piped = observed(
        "torch", "pipeline", facts={"pipeline_micro_batches": 8, "hand_over_bytes_per_sample": 4096}
    ).conditions

    assert (summed.passes, summed.batch) == (4, 2.0)
    assert (piped.passes, piped.batch, piped.messages) == (4, 2.0, (4096.0,))


@pytest.mark.parametrize(
    ("kind", "loaders", "ahead"), [("resident", 0, False), ("pipeline", 0, False), ("pipeline", 2, True)]
)
def test_input_comes_ahead_of_time_only_where_somebody_loads_it(kind: str, loaders: int, ahead: bool) -> None:
    assert observed("torch", "ddp", input=kind, loader_workers=loaders).conditions.prefetch is ahead


def test_waiting_for_somebody_elses_input_is_input() -> None:
    (even,), (uneven,) = (trainings([uneven_input(late)], manner_of, lambda _trial: None) for late in (0.0, 0.02))

    assert uneven.phases["data"] - even.phases["data"] == pytest.approx(0.02, rel=0.01)
    assert uneven.phases["communication"] == pytest.approx(even.phases["communication"], rel=0.01)


def test_units_of_sharded_weights_are_messages() -> None:
    assert observed("torch", "fsdp", facts={"unit_bytes": [100, 200]}).conditions.messages == (100.0, 200.0)


def test_keys_of_a_store_are_messages_of_their_own() -> None:
    ready = Ready(fractions=(0.2, 1.0), bytes=(300.0, 100.0), measured=False)
    record = make_record(framework="mxnet", strategy="dist_sync", workers=2)
    (training,) = trainings([record], manner_of, lambda _trial: ready)

    assert (training.conditions.messages, training.conditions.fractions) == (ready.bytes, ready.fractions)


def test_a_store_that_applies_the_optimizer_tells_both_at_once() -> None:
    derived = {"forward": 0.01, "backward": 0.02, "communication": 0.03}
    mixed = {"phases_mixed": {"phases": ["communication", "update"], "why": "the store applies the optimizer"}}
    (told,), (operators,), (plain,) = (
        trainings([fused_record(workers=2, by=by, seconds=derived, facts=facts)], manner_of, lambda _trial: None)
        for by, facts in (("timers", mixed), ("operators", mixed), ("timers", {}))
    )

    assert "communication" not in told.phases
    assert told.handed_over_s == pytest.approx(0.03)
    assert plain.handed_over_s is None
    # What operators take may hide behind computing: it is not all that would show.
    assert operators.handed_over_s is None


def test_a_phase_that_contains_exchange_says_nothing_of_computing() -> None:
    mixed = {"phases_mixed": {"phases": ["forward", "backward", "communication"], "why": "beside computing"}}
    several, alone = (observed("torch", "fsdp", workers=count, facts=mixed).phases for count in (2, 1))

    assert not {"forward", "backward"} & set(several)
    assert {"forward", "backward"} <= set(alone)


MIB = 2.0**20


@pytest.mark.parametrize(
    ("facts", "messages"),
    [
        ({"gradient_bytes": 3 * MIB, "exchange": "gloo", "wrapped": "none"}, (3 * MIB,)),
        (
            {"gradient_bytes": 30 * MIB, "exchange": "gloo", "wrapped": "DistributedDataParallel"},
            (MIB, 25 * MIB, 4 * MIB),
        ),
        (
            {"gradient_bytes": 3 * MIB, "bucket_bytes": [MIB, 2 * MIB], "wrapped": "DistributedDataParallel"},
            (MIB, 2 * MIB),
        ),
        ({"gradient_bytes": 3 * MIB, "exchange": "none", "wrapped": "none"}, ()),
        ({"gradient_bytes": 3 * MIB, "exchange": None, "wrapped": "none"}, (3 * MIB,)),
    ],
    ids=["one message", "DDP's default buckets", "DDP's own buckets", "no exchange", "another package exchanges"],
)
def test_gradients_of_a_script_are_its_messages(facts: dict[str, Any], messages: tuple[float, ...]) -> None:
    assert observed("script", "own", facts=facts).conditions.messages == messages


def test_lone_worker_of_a_script_tells_what_several_would_exchange() -> None:
    facts = {"gradient_bytes": 3 * MIB, "exchange": "none", "wrapped": "none"}

    assert observed("script", "own", workers=1, facts=facts).conditions.messages == (3 * MIB,)


def test_prediction_for_a_script_depends_on_the_network() -> None:
    facts = {"gradient_bytes": 40 * MIB, "exchange": "none", "wrapped": "none"}
    records = [make_record(framework="script", strategy="own", workers=1, repeat=r, facts=facts) for r in range(3)]
    (evidence,) = evidence_of_records(records)
    calibration = fit(evidence)
    fast, slow = (
        predict(calibration, conditions_for(calibration, workers=2, bandwidth=bandwidth)).step.value
        for bandwidth in (125e6, 12.5e6)
    )

    # 40 MiB twice half at 100 Mbit/s take 3.4 s.
    assert slow - fast > 2


def test_scripts_with_other_arguments_are_other_families() -> None:
    records = [
        make_record(framework="script", strategy="own", model="a.py", graph="script:01", options={"arguments": words})
        for words in ("--arch small", "--arch large")
    ]

    assert len(evidence_of_records(records)) == 2


def test_model_says_that_nothing_was_exchanged() -> None:
    facts = {"gradient_bytes": 3 * MIB, "exchange": "none"}
    records = [make_record(framework="script", strategy="own", workers=n, facts=facts) for n in (1, 2)]
    (evidence,) = evidence_of_records(records)

    assert any("leave out the exchange" in remark for remark in fit(evidence).remarks)
