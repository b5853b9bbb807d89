"""The worker's loop over collectives: sizes in turn, the message's bytes, trips halved, wrong results end the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paceline_worker import clock, collectives

SIZES = [1024, 4096]


class Events:
    def __init__(self) -> None:
        self.written: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.written.append({"event": event, **fields})


class Counted(collectives.Exercise):
    """Takes one second of a clock that only it moves."""

    def __init__(self, now: list[float], size: int, *, trips: int = 1, wrong: bool = False) -> None:
        self.now, self.size, self.trips, self.wrong = now, size, trips, wrong
        self.resets = self.runs = self.looked = 0

    def reset(self) -> None:
        self.resets += 1
        self.now[0] += 10

    def run(self) -> None:
        self.runs += 1
        self.now[0] += 1

    def result(self) -> tuple[float, float]:
        self.looked += 1
        return (2.0 if self.wrong else 3.0), collectives.expected_sum(2)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr(clock, "wall", lambda: time[0])
    monkeypatch.setattr(clock, "cpu", lambda: time[0])
    return time


def job(**changed: Any) -> Any:
    collective = {"operation": "all_reduce", "sizes": SIZES}
    return SimpleNamespace(**{"rank": 0, "warmup_steps": 1, "steps": 3, "collective": collective, **changed})


def test_sizes_come_in_turn_and_only_the_operation_is_timed(now: list[float]) -> None:
    events, exercises, met = Events(), [Counted(now, size) for size in SIZES], []
    collectives.take_rounds(job(), events, exercises, lambda: met.append(now[0]))

    assert [(block["kind"], block["first"], block["bytes"]) for block in events.written] == [
        ("first", 0, [1024]),
        ("warmup", 1, [4096]),
        ("measured", 2, SIZES * 3),
    ]
    assert {wall for block in events.written for wall in block["wall_s"]} == {1.0}
    assert [start for block in events.written for start in block["start_s"]] == [11.0 * step for step in range(8)]
    assert len(met) == 8
    assert all(block["phases"] == {"communication": block["wall_s"]} for block in events.written)


def test_results_are_looked_at_in_the_first_round_only(now: list[float]) -> None:
    exercises = [Counted(now, size) for size in SIZES]
    collectives.take_rounds(job(), Events(), exercises, lambda: None)

    assert [(one.runs, one.looked) for one in exercises] == [(4, 1), (4, 1)]


def test_a_ping_pong_counts_one_way(now: list[float]) -> None:
    events = Events()
    collectives.take_rounds(job(), events, [Counted(now, 1024, trips=2)], lambda: None)

    assert {time for block in events.written for time in (*block["wall_s"], *block["cpu_s"])} == {0.5}


def test_a_wrong_result_ends_the_run_and_says_which(now: list[float]) -> None:
    exercises = [Counted(now, 1024), Counted(now, 4096, wrong=True)]

    with pytest.raises(collectives.WrongResultError, match=r"all_reduce of 4096 bytes gave 2\.0 on rank 0.*3\.0"):
        collectives.take_rounds(job(), Events(), exercises, lambda: None)
