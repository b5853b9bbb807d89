from __future__ import annotations

from paceline.run.host_state import during, during_all, machine, moment
from paceline.sites import BusyCounter


def counter(**changes: float | None) -> BusyCounter:
    return BusyCounter(
        **{
            "wall_s": 0.0,
            "busy_s": 0.0,
            "steal_s": 0.0,
            "host_s": 0.0,
            "cores": 2,
            "pressure_s": 0.0,
            "oom_kills": 0,
            "load1": 0.0,
            **changes,
        }
    )


def test_what_neither_ranks_nor_host_used_was_others() -> None:
    load = during(counter(), counter(wall_s=10.0, busy_s=15.0, host_s=0.05), workers_cpu_s=10.0)

    assert round(load["busy_other_fraction"], 4) == round((15 - 10 - 0.05) / 20, 4)
    assert load["host_cpu_fraction"] == 0.005


def test_pressure_is_that_of_the_run_alone() -> None:
    load = during(counter(pressure_s=100.0), counter(wall_s=10.0, pressure_s=102.5, oom_kills=1), workers_cpu_s=0.0)

    assert load["cpu_pressure_some"] == 0.25
    assert load["oom_kills"] == 1


def test_counters_that_disagree_by_rounding_never_give_negative_others() -> None:
    assert during(counter(), counter(wall_s=10.0, busy_s=9.9), workers_cpu_s=10.0)["busy_other_fraction"] == 0


def test_of_several_machines_the_worst_is_told_and_each_by_itself() -> None:
    before = [counter(), counter(), None]
    after = [
        counter(wall_s=10.0, busy_s=15.0, pressure_s=None),
        counter(wall_s=20.0, oom_kills=1, pressure_s=5.0),
        None,
    ]

    state = during_all(before, after, workers_cpu_s=[10.0, 0.0, 7.0])

    assert [load["wall_s"] for load in state["hosts"]] == [10.0, 20.0]
    assert state["during"] == {
        "wall_s": 20.0,
        "busy_other_fraction": 0.25,
        "steal_fraction": 0.0,
        "host_cpu_s": 0.0,
        "host_cpu_fraction": 0.0,
        "workers_cpu_s": 17.0,
        "cpu_pressure_some": 0.25,
        "load1": 0.0,
        "cpu_freq_mhz": None,
        "oom_kills": 1,
    }


def test_machine_keeps_its_id_and_tells_no_name() -> None:
    first, second = machine(), machine()

    assert first == second
    assert len(first["id"]) == 12
    assert not {"hostname", "host", "node"} & set(first)


def test_moment_is_complete() -> None:
    now = moment()

    assert now["memory_available_bytes"] > 0
    assert {"load1", "cpu_pressure_some_avg10", "cpu_freq_mhz"} <= set(now)
