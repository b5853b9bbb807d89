"""A trial's identity, and its processes."""

from __future__ import annotations

from dataclasses import asdict, replace

from paceline.frameworks.base import one_worker_a_slot
from paceline.plan.process import Host, Topology
from paceline.plan.trial import Trial
from paceline.spec.study import Network
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


def test_an_id_is_hashed_once_and_a_changed_trial_has_its_own(monkeypatch):
    hashed = []
    told = Trial.to_json
    monkeypatch.setattr(Trial, "to_json", lambda trial: hashed.append(1) or told(trial))
    trial = make_trial()

    assert trial.id == trial.id
    assert [1] == hashed
    assert replace(trial, limits=replace(trial.limits, time_s=1.0)).id == trial.id
    assert replace(trial, workload=replace(trial.workload, seed=9)).id != trial.id
    assert make_trial() == trial


def test_a_trial_as_json_is_plain_and_comes_back():
    trial = make_trial(hosts=2, network=Network(preset="1GbE", bandwidth_bytes_per_s=1.25e8), knobs={"k": [1, 2]})

    assert trial.to_json() == asdict(trial)
    assert Trial.from_json(trial.to_json()) == trial
