from __future__ import annotations

from dataclasses import replace

from paceline.recommend.recommendation import Choice
from paceline.recommend.switching import switching

NOW = Choice(
    framework="torch", strategy="ddp", model="mlp", workers=2, hosts=1, batch=8, threads=1, network=None, knobs={}
)


def to(**changes: object) -> str:
    return switching(NOW, replace(NOW, **changes))  # type: ignore[arg-type]


def test_staying_costs_nothing():
    assert to() == ""


def test_another_framework_is_a_new_program_in_a_new_environment():
    words = to(framework="jax", strategy="shard_map", knobs={"donate": True})

    assert "torch → jax" in words
    assert "rewrite the training program" in words
    assert "environment" in words
    assert "donate" not in words


def test_another_strategy_is_a_part_of_the_program():
    assert "ddp → zero" in to(strategy="zero")


def test_more_workers_change_the_global_batch():
    words = to(workers=8)

    assert "6 more workers" in words
    assert "from 16 to 64" in words
    assert "learning rate" in words


def test_hosts_are_counted_where_they_change():
    assert "3 more hosts" in to(workers=8, hosts=4)
    assert "1 fewer worker" in to(workers=1)


def test_a_batch_that_stays_the_same_in_all_needs_no_new_learning_rate():
    assert "learning rate" not in to(workers=4, batch=4)


def test_a_knob_is_one_line():
    assert to(knobs={"bucket_bytes": 2097152.0}) == "set bucket_bytes=2097152 (a one-line change)"
    assert to(knobs={"a": 1, "b": True}) == "set a=1, set b=on (2 lines to change)"
    assert switching(replace(NOW, knobs={"a": 1}), NOW) == "remove a (a one-line change)"


def test_threads_and_networks_are_told():
    assert "1 more thread per worker" in to(threads=2)
    assert "1GbE → 10GbE" in switching(replace(NOW, network="1GbE"), replace(NOW, network="10GbE"))


def test_another_class_asks_for_accuracy():
    assert "approximate instead of exact: check the accuracy" in to(strategy_class="approximate")


def test_a_choice_is_called_by_all_that_it_is():
    other = replace(
        NOW, workers=8, hosts=4, threads=2, network="1GbE", knobs={"overlap": False}, strategy_class="approximate"
    )

    assert NOW.label == "torch ddp · mlp · 2 workers · batch 8"
    assert other.label == (
        "torch ddp (approximate) · mlp · 8 workers × 2 threads on 4 hosts · batch 8 · 1GbE · overlap=off"
    )
