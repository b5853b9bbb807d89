"""A fault waits for a rank to reach its step, and a run without one has no thread."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from paceline.run.disturbance import disturbing
from paceline_worker.loop import take_steps


class Disturbed:
    def __init__(self, step: int | None) -> None:
        self.step = step
        self.struck = threading.Event()

    def disturbs_at(self) -> int | None:
        return self.step

    def disturb(self) -> None:
        self.struck.set()


def steps_of(folder: Path, tell_at_step: int | None) -> list[tuple[int, bool]]:
    """Steps that a rank takes, each with whether the file was there when it was taken."""
    job = SimpleNamespace(warmup_steps=1, steps=3, tell_at_step=tell_at_step, folder=str(folder))
    taken: list[tuple[int, bool]] = []
    silent: Any = SimpleNamespace(open=lambda: None, drain=dict, write=lambda *_a, **_k: None)
    take_steps(job, silent, silent, lambda n: taken.append((n, (folder / "reached.2").exists())), lambda: None)
    return taken


def test_rank_tells_just_before_the_step_and_only_then(tmp_path: Path) -> None:
    assert steps_of(tmp_path, None) == [(0, False), (1, False), (2, False), (3, False)]
    assert steps_of(tmp_path, 2) == [(0, False), (1, False), (2, True), (3, True)]


def test_site_is_asked_to_act_once_the_step_is_reached(tmp_path: Path) -> None:
    site: Any = Disturbed(2)
    with disturbing(site, tmp_path):
        assert not site.struck.wait(0.2)
        (tmp_path / "reached.2").touch()
        assert site.struck.wait(60)


def test_run_that_never_gets_there_is_left_alone(tmp_path: Path) -> None:
    site: Any = Disturbed(2)
    with disturbing(site, tmp_path):
        pass

    assert not site.struck.is_set()


def test_run_without_a_fault_has_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with disturbing(Disturbed(None), tmp_path):  # type: ignore[arg-type]
        assert threading.active_count() == before
