"""What a program marks: nothing without Paceline; steps, phases and samples with it."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from paceline_worker import clock, mark
from paceline_worker.recorder import Recorder


class Lines:
    """Events, kept."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})

    def steps(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == "steps"]


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still until it is told to move."""
    now = SimpleNamespace(at=100.0)
    monkeypatch.setattr(clock, "wall", lambda: now.at)
    return now


def attached(monkeypatch: pytest.MonkeyPatch, warmup: int = 2, steps: int = 3) -> tuple[Recorder, Lines]:
    lines = Lines()
    recorder = Recorder(
        SimpleNamespace(warmup_steps=warmup, steps=steps), lines, lambda: {"parameters": None, "facts": {}}
    )
    monkeypatch.setattr(mark, "_recorder", recorder)
    return recorder, lines


def test_without_paceline_marks_do_nothing_and_batches_are_what_they_were() -> None:
    batches = [1, 2]

    assert mark.steps(batches) is batches
    assert not mark.active()
    with mark.phase("forward"):
        mark.loss(1.0)
        mark.samples(3)
    mark.step()
    with pytest.raises(KeyError), mark.phase("forward"):
        raise KeyError


def test_rounds_of_the_loop_are_steps_and_the_program_ends_after_the_last(monkeypatch, ticks) -> None:
    recorder, lines = attached(monkeypatch)

    def batches() -> Any:
        while True:
            ticks.at += 1.0
            yield None

    def train() -> None:
        for number, _ in enumerate(mark.steps(batches())):
            ticks.at += 2.0
            with mark.phase("forward"):
                ticks.at += 4.0
            mark.loss(float(number))

    with pytest.raises(mark.Finished) as caught:
        train()

    assert (recorder.taken, recorder.finished, caught.value.code) == (5, True, 0)
    assert [(line["kind"], line["first"], len(line["wall_s"])) for line in lines.steps()] == [
        ("first", 0, 1),
        ("warmup", 1, 1),
        ("measured", 2, 3),
    ]
    measured = lines.steps()[-1]
    assert measured["wall_s"] == [7.0] * 3
    assert measured["phases"] == {"data": [1.0] * 3, "forward": [4.0] * 3}
    assert measured["start_s"] == [14.0, 21.0, 28.0]
    assert measured["loss"] == [2.0, 3.0, 4.0]
    assert lines.lines[0]["event"] == "ready"


def test_finished_is_a_system_exit_that_no_except_exception_catches() -> None:
    assert issubclass(mark.Finished, SystemExit)
    assert not issubclass(mark.Finished, Exception)


def test_inner_phase_is_not_counted_to_the_outer_one(monkeypatch, ticks) -> None:
    _, lines = attached(monkeypatch, warmup=0, steps=1)
    mark.step()
    with mark.phase("outer"):
        ticks.at += 1.0
        with mark.phase("inner"):
            ticks.at += 2.0
        ticks.at += 4.0
    ticks.at += 8.0
    with pytest.raises(mark.Finished):
        mark.step(0.5)

    (block,) = lines.steps()
    assert block["phases"] == {"inner": [2.0], "outer": [5.0]}
    assert (block["wall_s"], block["loss"]) == ([15.0], [0.5])


def test_first_step_call_starts_the_clock_and_set_up_is_in_no_step(monkeypatch, ticks) -> None:
    recorder, lines = attached(monkeypatch, warmup=0, steps=2)
    ticks.at += 50.0
    mark.step()
    assert recorder.taken == 0
    for _ in range(2):
        ticks.at += 3.0
        if recorder.taken == 1:
            with pytest.raises(mark.Finished):
                mark.step()
        else:
            mark.step()

    assert lines.steps()[0]["wall_s"] == [3.0, 3.0]


def test_time_between_two_loops_is_in_no_step(monkeypatch, ticks) -> None:
    _, lines = attached(monkeypatch, warmup=0, steps=4)

    def epoch() -> None:
        for _ in mark.steps([1, 2]):
            ticks.at += 1.0

    epoch()
    ticks.at += 100.0
    with pytest.raises(mark.Finished):
        epoch()

    assert lines.steps()[0]["wall_s"] == [1.0] * 4
    assert lines.steps()[0]["start_s"] == [0.0, 1.0, 102.0, 103.0]


def test_round_that_is_left_by_break_is_no_step(monkeypatch, ticks) -> None:
    recorder, _ = attached(monkeypatch)
    for number in mark.steps(range(10)):
        ticks.at += 1.0
        if number == 1:
            break

    assert recorder.taken == 1
    assert not recorder.under_way


def test_phase_that_comes_late_is_zero_in_the_steps_before_it(monkeypatch, ticks) -> None:
    _, lines = attached(monkeypatch, warmup=0, steps=3)

    def train() -> None:
        for number in mark.steps(range(5)):
            if number == 2:
                with mark.phase("save"):
                    ticks.at += 1.0

    with pytest.raises(mark.Finished):
        train()

    assert lines.steps()[0]["phases"]["save"] == [0.0, 0.0, 1.0]


def test_samples_of_a_step_add_up_and_warm_up_does_not_count(monkeypatch, ticks) -> None:
    recorder, _ = attached(monkeypatch)

    def train() -> None:
        for number in mark.steps(range(9)):
            ticks.at += 1.0
            mark.samples(7 if number < 2 else 16)
            mark.samples(16)

    with pytest.raises(mark.Finished):
        train()

    assert recorder.samples_per_step == 32.0


def test_two_ways_to_end_a_step_at_once_are_refused(monkeypatch, ticks) -> None:
    attached(monkeypatch)

    def train() -> None:
        for _ in mark.steps([1]):
            ticks.at += 1.0
            mark.step()

    with pytest.raises(RuntimeError, match="take one of the two"):
        train()


def test_loop_has_the_length_of_what_it_goes_through(monkeypatch) -> None:
    attached(monkeypatch)

    assert len(mark.steps([1, 2, 3])) == 3


def test_samples_and_loss_may_be_told_before_the_first_step(monkeypatch, ticks) -> None:
    recorder, lines = attached(monkeypatch, warmup=0, steps=2)
    mark.loss(9.0)

    def train() -> None:
        for number, batch in enumerate([[0] * 4] * 5):
            ticks.at += 1.0
            mark.samples(len(batch))
            mark.step(float(number))

    with pytest.raises(mark.Finished):
        train()

    # The first call of step only starts the clock.
    assert lines.steps()[0]["loss"] == [1.0, 2.0]
    assert recorder.samples_per_step == 4.0


def test_phases_before_between_and_around_loops_are_in_no_step(monkeypatch, ticks) -> None:
    _, lines = attached(monkeypatch, warmup=0, steps=4)

    def evaluate() -> None:
        with mark.phase("evaluation"), mark.phase("forward"):
            ticks.at += 100.0

    def epoch() -> None:
        with mark.phase("epoch"):
            for _ in mark.steps([1, 2]):
                with mark.phase("forward"):
                    ticks.at += 1.0

    evaluate()
    epoch()
    evaluate()
    with pytest.raises(mark.Finished):
        epoch()

    (block,) = lines.steps()
    assert block["wall_s"] == [1.0] * 4
    assert block["phases"] == {"data": [0.0] * 4, "forward": [1.0] * 4}


def test_loop_has_the_attributes_of_what_it_goes_through(monkeypatch) -> None:
    class Loader(list):  # type: ignore[type-arg]
        epoch = 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    attached(monkeypatch)
    loader = Loader()
    loop = mark.steps(loader)
    loop.set_epoch(3)

    assert (loader.epoch, loop.epoch) == (3, 3)
    assert not hasattr(loop, "sampler")
    assert copy.copy(loop).epoch == 3


def test_loss_is_read_when_the_block_is_written_and_without_its_history(monkeypatch, ticks) -> None:
    read: list[str] = []

    class Lazy:
        def detach(self) -> Lazy:
            read.append("detached")
            return self

        def __float__(self) -> float:
            read.append("read")
            return 1.5

    _, lines = attached(monkeypatch, warmup=0, steps=2)

    def train() -> None:
        for _ in mark.steps(range(5)):
            ticks.at += 1.0
            mark.loss(Lazy())

    with pytest.raises(mark.Finished):
        train()

    assert read == ["detached", "detached", "read", "read"]
    assert lines.steps()[0]["loss"] == [1.5, 1.5]
