from __future__ import annotations

import pytest

from paceline.compare import compare, families
from paceline.spec.networks import NETWORKS
from paceline.spec.study import Network
from records import failed_record, make_record, make_trial


def rows_of(records, **options):
    return {row.workers: row for row in compare(records, **options).rows}


def test_base_is_exactly_one_and_the_rest_is_per_worker_against_it():
    steps = {1: 0.05, 2: 0.0625, 4: 0.1}
    rows = rows_of([make_record(workers=n, step_s=s, repeat=r) for n, s in steps.items() for r in range(3)])

    assert (rows[1].efficiency.value, rows[1].efficiency.low, rows[1].efficiency.high) == (1, 1, 1)
    assert rows[2].efficiency.value == pytest.approx(0.8, rel=0.02)
    assert rows[4].efficiency.value == pytest.approx(0.5, rel=0.02)
    assert rows[4].speedup.value == pytest.approx(2.0, rel=0.02)
    assert rows[4].base == rows[1].key


def test_drift_that_hits_whole_rounds_cancels():
    drift = [1.0, 1.2, 0.9, 1.4]
    rows = rows_of(
        [
            make_record(workers=n, step_s=s * d, repeat=r, jitter=0.001)
            for n, s in ((1, 0.05), (2, 0.0625))
            for r, d in enumerate(drift)
        ]
    )

    assert rows[2].throughput.high / rows[2].throughput.low > 1.5
    assert rows[2].efficiency.high - rows[2].efficiency.low < 0.01
    assert rows[2].efficiency.low < 0.8 < rows[2].efficiency.high + 0.005


def test_strong_scaling_keeps_the_global_batch():
    rows = rows_of(
        [
            make_record(workers=n, batch=64 // n, scaling="strong", step_s=s, repeat=r)
            for n, s in ((1, 0.1), (2, 0.0625))
            for r in range(3)
        ]
    )

    assert rows[2].efficiency.value == pytest.approx(0.8, rel=0.02)


def test_weak_scaling_with_another_batch_is_another_family():
    rows = rows_of([make_record(workers=n, batch=b, repeat=r) for n, b in ((1, 32), (2, 16)) for r in range(2)])

    assert rows[2].efficiency is None
    assert "no trial with fewer workers" in rows[2].efficiency_note


def test_one_worker_with_two_threads_is_no_base_for_two_workers_with_one():
    rows = rows_of([make_record(workers=n, threads=t, repeat=r) for n, t in ((1, 2), (2, 1)) for r in range(2)])

    assert rows[2].efficiency is None


def test_failed_base_leaves_efficiency_unknown_with_the_reason():
    rows = rows_of([failed_record(workers=1), *(make_record(workers=2, repeat=r) for r in range(2))])

    assert rows[2].efficiency is None
    assert "has no successful run" in rows[2].efficiency_note


def test_base_of_another_machine_does_not_count():
    rows = rows_of([make_record(workers=n, machine_id=m) for n, m in ((1, "a"), (2, "b"))], across_machines=True)

    assert rows[2].efficiency is None


def test_single_host_is_the_base_of_every_network():
    slow = Network(bandwidth_bytes_per_s=125e6)
    trials = [
        make_trial(workers=1),
        make_trial(workers=2, hosts=2, network=slow),
        make_trial(workers=2, hosts=2),
    ]
    rows = compare([make_record(trial=trial, repeat=r) for trial in trials for r in range(2)]).rows

    assert [row.base for row in rows] == [rows[0].key] * 3


def test_one_run_each_gives_an_efficiency_without_interval():
    rows = rows_of([make_record(workers=n) for n in (1, 2)])

    assert rows[2].efficiency.value > 0
    assert rows[2].efficiency.low is None


def test_families_are_of_one_network_and_share_the_host_that_has_none():
    fast, slow = NETWORKS["1GbE"], NETWORKS["100Mbit"]
    records = [
        make_record(site="lab", workers=hosts, hosts=hosts, network=network, repeat=repeat, step_s=0.05 * hosts)
        for hosts, network in ((1, None), (2, slow), (2, fast), (4, slow), (4, fast))
        for repeat in range(2)
    ]
    found = families(compare(records))

    assert [(one.network, [row.workers for row in one.rows]) for one in found] == [
        ("100Mbit", [1, 2, 4]),
        ("1GbE", [1, 2, 4]),
    ]
    assert len({one.key for one in found}) == 2
    assert {one.base.hosts for one in found} == {1}
    assert all(row.network in {None, one.network} for one in found for row in one.rows)


def test_workers_that_never_exchange_have_no_efficiency():
    records = [
        make_record(framework="script", strategy="own", workers=n, repeat=r, facts={"exchange": "none"})
        for n in (1, 2)
        for r in range(3)
    ]
    rows = rows_of(records)

    assert rows[1].efficiency.value == 1
    assert rows[2].efficiency is None
    assert rows[2].speedup is None
    assert "never exchanged gradients" in rows[2].efficiency_note
