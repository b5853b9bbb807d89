"""A trial's identity, and its processes."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import one_worker_a_slot
from paceline.plan.process import Host, Topology
from paceline.plan.trial import Trial
from records import make_trial


def one_process(trial: Trial) -> Trial:
    return replace(trial, framework=replace(trial.framework, one_process=True))


def test_settings_that_came_later_leave_the_ids_of_earlier_records_alone():
    trial = make_trial()
    stored = trial.to_json()
    del stored["framework"]["one_process"], stored["measure"]["evidence"]

    assert Trial.from_json(stored).id == trial.id
    assert one_process(trial).id != trial.id
    assert replace(trial, measure=replace(trial.measure, evidence=True)).id != trial.id


def test_workers_that_are_devices_of_one_process_are_one_rank_with_all_their_cores():
    trial = one_process(make_trial(workers=2))
    topology = Topology(hosts=(Host(name="h", address="127.0.0.1", cores=(0, 1)),))

    (process,) = one_worker_a_slot(trial, topology, {})

    assert trial.ranks == 1
    assert trial.workers == 2
    assert process.cores == (0, 1)
