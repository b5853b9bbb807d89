"""S6: `kill -9` at random moments, of the host or of one rank; resumed, every run is recorded once, nothing is left."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from paceline.record import Store
from street import command_environment, study_of, to_toml

KILLS = 20
PATIENCE_S = 300
REPEATS = 40
"""Of each of two trials: enough that a fast machine does not end the study before the last kill."""


def ranks_of(folder: Path) -> list[psutil.Process]:
    """Processes that carry a job of this test's store."""
    ranks = []
    for process in psutil.process_iter():
        try:
            job = process.environ().get("PACELINE_JOB", "")
            if process.status() != psutil.STATUS_ZOMBIE and job.startswith(str(folder)):
                ranks.append(process)
        except (psutil.Error, OSError):
            continue
    return ranks


def start_host(folder: Path, study: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "paceline", "run", str(study)],
        cwd=folder,
        env=command_environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_something(host: subprocess.Popen[bytes], folder: Path, victim: str, dice: random.Random) -> str:
    """Kill the host or one rank, at a random moment after the first rank appeared; "over" if the study ended first."""
    if not wait_for_ranks(host, folder):
        return "over"
    time.sleep(dice.uniform(0, 0.6))
    # Whoever trains by now: on a fast machine the ranks that were first seen are gone, and others have come.
    if not (ranks := wait_for_ranks(host, folder)):
        return "over"
    target = psutil.Process(host.pid) if victim == "host" else dice.choice(ranks)
    try:
        target.kill()
    except psutil.NoSuchProcess:
        return "missed"
    return victim


def wait_for_ranks(host: subprocess.Popen[bytes], folder: Path) -> list[psutil.Process]:
    """The ranks that train, once there are some; none where the host ended first."""
    deadline = time.monotonic() + PATIENCE_S
    while not (ranks := ranks_of(folder)):
        if host.poll() is not None:
            return []
        assert time.monotonic() < deadline, "no rank was ever started"
        time.sleep(0.01)
    return ranks


def test_killed_twenty_times_every_run_is_recorded_once_and_no_process_is_left(tmp_path: Path) -> None:
    dice = random.Random(20260101)
    study = tmp_path / "study.toml"
    study.write_text(
        to_toml(study_of(cluster={"workers_per_host": [1, 2]}, measure={"repeats": REPEATS, "steps": 300})),
        encoding="utf-8",
    )
    kills: list[str] = []
    while sum(kill != "missed" for kill in kills) < KILLS:
        host = start_host(tmp_path, study)
        victim = "host" if kills.count("host") < kills.count("rank") else "rank"
        kills.append(kill_something(host, tmp_path, victim, dice))
        if kills[-1] != "host":
            # A lost rank is one failed run, and the host goes on to the next: end it, to strike again elsewhere.
            time.sleep(dice.uniform(0, 0.3))
            host.send_signal(signal.SIGKILL)
        host.wait()
        assert_nothing_is_left(tmp_path)
        if kills[-1] == "over":
            break
    assert (kills.count("host"), kills.count("rank")) == (KILLS // 2, KILLS // 2), kills

    finished = subprocess.run(
        [sys.executable, "-m", "paceline", "run", str(study)],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    # 5: ranks that were killed are recorded as failed, which is the truth.
    assert finished.returncode in {0, 5}, finished.stderr
    with Store.open(tmp_path / "store") as store:
        records = store.records()
    runs = [(record.trial.id, record.repeat) for record in records]
    assert len(runs) == len(set(runs)) == 2 * REPEATS
    assert all(record.ok or "signal 9" in (record.outcome.reason or "") for record in records)
    assert all(record.samples is not None for record in records if record.ok)
    assert_nothing_is_left(tmp_path)
    assert not [path for path in (tmp_path / "store" / "scratch").rglob("*") if path.is_file()]


def assert_nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while left := ranks_of(folder):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)
